"""Random jobs on random small clusters, for the laws that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from clustersim.collective.halving_doubling import halving_doubling
from clustersim.collective.hierarchical import hierarchical
from clustersim.collective.traffic import GroupShape, Traffic
from clustersim.engine.simulate import simulate
from clustersim.topology.topology import Topology
from clustersim.trace.result import Result
from clustersim.workload.job import GroupFamily, Job, Pool
from clustersim.workload.program import Program


@dataclass(frozen=True, repr=False)
class Case:
    """Jobs on a cluster, and what is wrong with it."""

    topology: Topology
    jobs: tuple[Job, ...]
    rounds: int = 1
    perturb: dict[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return self.rounds * self.jobs[0].period

    def run(self, **options: Any) -> Result:
        return simulate(self.topology, self.jobs, steps=self.steps, perturb=self.perturb, **options)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # how hypothesis shows a failing case
        lines = [f"{self.topology.num_nodes} nodes, {self.rounds} rounds, {self.perturb}"]
        for job in self.jobs:
            lines += [f"{job.name}: {job.num_ranks} ranks, roles {job.program_of.tolist()}, {dict(job.pools)}"]
            lines += [f"  {family.slots}: {family.members.tolist()}" for family in job.families]
            for program in job.programs:
                ops = program.arrays()
                lines += [f"  {program.name}:"]
                lines += [f"    {ops.streams[s]}: {ops.ops[k]}" for s, k in zip(ops.stream, ops.op, strict=True)]
        printer.text("\n".join(lines))

    @property
    def num_ranks(self) -> int:
        return sum(job.num_ranks for job in self.jobs)

    def renumbered(self, orders: Sequence[NDArray[np.int64]]) -> Case:
        """Rank r of job j becomes rank ``orders[j][r]``: same programs on the same devices in the same groups."""
        jobs = [_renumbered(job, new) for job, new in zip(self.jobs, orders, strict=True)]
        slow = {int(orders[0][rank]): factor for rank, factor in self.perturb.get("slow_ranks", {}).items()}
        return replace(self, jobs=tuple(jobs), perturb={**self.perturb, "slow_ranks": slow})


def times(run: Result, job: int, rank: int) -> tuple[list[int], list[int]]:
    """(start, end) of every op of a rank [ns]."""
    lane = run.record.lanes[run.record.lane_of[job][rank]]
    return lane.start_ns.tolist(), lane.end_ns.tolist()


def _renumbered(job: Job, new: NDArray[np.int64]) -> Job:
    program_of, devices = np.empty_like(job.program_of), np.empty_like(job.program_of)
    program_of[new] = job.program_of
    devices[new] = np.arange(job.num_ranks) if job.devices is None else job.devices
    families = tuple(replace(family, members=new[family.members]) for family in job.families)
    return replace(job, program_of=program_of, devices=devices, families=families)


@pytest.fixture(scope="session")
def cases(star: ModuleType) -> Callable[..., st.SearchStrategy[Case]]:
    """``cases(max_ranks)``: a strategy."""
    return lambda max_ranks, shared_pools=True: _cases(star, max_ranks, shared_pools)


@pytest.fixture(scope="session")
def times_of() -> Callable[[Result, int, int], tuple[list[int], list[int]]]:
    return times


@st.composite
def _cases(draw: st.DrawFn, star: ModuleType, max_ranks: int, shared_pools: bool) -> Case:
    num_jobs = draw(st.sampled_from([1, 1, 1, 2]))
    meshes = [_draw_mesh(draw, max_ranks // num_jobs) for _ in range(num_jobs)]
    num_ranks = sum(mesh.size for mesh in meshes)
    per_node = draw(st.sampled_from([1, 2, 4, 8]))
    num_nodes = -(-num_ranks // per_node)
    num_devices = num_nodes * per_node
    mixed = draw(st.sampled_from([None, None, "nodes", "devices"]))
    if mixed == "nodes":
        gpu_of = np.repeat(draw(st.lists(st.integers(0, 1), min_size=num_nodes, max_size=num_nodes)), per_node)
    elif mixed == "devices":
        slow = draw(st.sets(st.integers(0, num_devices - 1), max_size=2))
        gpu_of = np.isin(np.arange(num_devices), list(slow))
    else:
        gpu_of = np.zeros(num_devices)
    topology = star.cluster(
        num_nodes,
        per_node,
        leaf=draw(st.integers(1, 2)),
        over=draw(st.sampled_from([1.0, 1.5, 3.0])),
        nvlink=draw(st.sampled_from([1e11, 3e10])),
        dram=draw(st.sampled_from([1e11, 4e10, 1.5e10])),
        pcie=draw(st.sampled_from([2e10, 1e10])),
        latency=draw(st.sampled_from([0.0, 1e-6])),
        gpus=(star.CARD, star.SLOW_CARD),
        gpu_of=gpu_of,
    )
    # jobs sit side by side, alternate so that they meet on NICs, DRAM and drives, or share GPUs and so meet on HBM
    place = np.arange(num_ranks)
    sitting = draw(st.sampled_from(["side by side", "alternating", "stacked"]))
    if sitting == "alternating":
        place = np.argsort(place % num_jobs, kind="stable")
    period = draw(st.sampled_from([1, 1, 1, 2, 3]))
    jobs, first = [], 0
    for j, mesh in enumerate(meshes):
        scopes = ["rank", "node", "job"] if shared_pools else ["rank"]
        jobs.append(_draw_job(draw, star, f"job {j}", mesh, place[first : first + mesh.size], scopes, period))
        first += mesh.size if sitting != "stacked" else 0
    rank = st.integers(0, meshes[0].size - 1)
    names = topology.resources.names()
    perturb: dict[str, Any] = {"slow_ranks": {}, "slow_links": {}}
    if draw(st.booleans()):
        perturb["slow_ranks"] = draw(st.dictionaries(rank, st.sampled_from([1.25, 2.0, 0.5]), max_size=2))
    if draw(st.booleans()):
        some = st.dictionaries(st.sampled_from(names), st.sampled_from([0.5, 0.3, 2.0]), max_size=2)
        perturb["slow_links"] = draw(some)
    return Case(topology=topology, jobs=tuple(jobs), rounds=draw(st.integers(1, 3)), perturb=perturb)


def _draw_mesh(draw: st.DrawFn, max_ranks: int) -> NDArray[np.int64]:
    """Ranks by (pp, dp, tp), the axes laid out in any order."""
    sizes: list[int] = []
    for _ in range(3):
        room = max_ranks // int(np.prod(sizes, dtype=np.int64))
        sizes.append(draw(st.sampled_from([n for n in (2, 4, 1, 8, 3) if n <= room])))
    order = draw(st.permutations(range(3)))
    laid_out = np.arange(int(np.prod(sizes))).reshape([sizes[axis] for axis in order])
    return laid_out.transpose(np.argsort(order))


def _draw_job(
    draw: st.DrawFn,
    star: ModuleType,
    name: str,
    mesh: NDArray[np.int64],
    devices: NDArray[np.int64],
    scopes: list[Any],
    period: int,
) -> Job:
    num_stages, dp, tp = mesh.shape
    families = []
    if tp > 1:
        families.append(star.groups("tp", *mesh.reshape(-1, tp)))
    if dp > 1:
        families += [star.groups(slot, *mesh.transpose(0, 2, 1).reshape(-1, dp)) for slot in DP_SLOTS]
    for there, back, pairs in (("out", "in", (mesh[:-1], mesh[1:])), ("back_out", "back_in", (mesh[1:], mesh[:-1]))):
        if num_stages > 1:
            members = np.stack([pairs[0].reshape(-1), pairs[1].reshape(-1)], axis=1)
            families.append(GroupFamily(name=there, members=members, slots=(there, back)))
    recipe = _Recipe(draw, star, tp, dp, num_stages)
    programs = tuple(recipe.program(stage, period) for stage in range(num_stages))
    program_of = np.empty(mesh.size, dtype=np.int64)
    program_of[mesh.reshape(-1)] = np.repeat(np.arange(num_stages), dp * tp)
    pools = {
        pool: Pool(capacity=draw(st.integers(2, 3)), scope=draw(st.sampled_from(scopes)))
        for pool in ("pinned", "worker")
    }
    return Job(
        name=name, programs=programs, program_of=program_of, families=tuple(families), devices=devices, pools=pools
    )


class _Recipe:
    """What all stages of a job have in common; durations from few values, so that ties are common."""

    def __init__(self, draw: st.DrawFn, star: ModuleType, tp: int, dp: int, num_stages: int) -> None:
        self.draw, self.star = draw, star
        self.tp, self.dp, self.num_stages = tp, dp, num_stages
        self.num_micro_batches = draw(st.integers(1, 3))
        self.tp_stream = draw(st.sampled_from(["main", "tp"]))
        calls = st.sampled_from([("all_reduce", ""), ("all_gather", ""), ("gather", ""), ("all_reduce", levels)])
        self.tp_ops = {
            way: star.collective(kind, draw(self.bytes()), "tp", algorithm=algorithm)
            for way, (kind, algorithm) in ((way, draw(calls)) for way in (1, -1))
        }
        self.dp_ops = [
            star.collective(kind, 0 if kind == "barrier" else draw(self.bytes()), slot, algorithm=algorithm)
            for slot, (kind, algorithm) in zip(DP_SLOTS, draw(st.tuples(*[st.sampled_from(_DP_OPS)] * 2)), strict=True)
        ]
        self.message = draw(self.bytes())
        self.dp_streams = draw(st.sampled_from([("dp",), ("dp", "dp"), ("dp", "dp 2"), ("main", "dp")]))
        self.offload = draw(st.sampled_from(["", "pinned", "two pools", "host", "drive"]))
        self.carried = draw(st.booleans())

    def bytes(self) -> st.SearchStrategy[int]:
        return st.sampled_from([1, 999, 10_000, 40_000, 123_457])

    def work(self) -> Any:
        """Some work of one rank."""
        ns = self.draw(st.sampled_from([0, 1, 700, 1000, 3000]))
        star = self.star
        kind = self.draw(st.sampled_from(["gemm", "gemm", "both", "sweep", "delay"]))
        if kind == "delay" or not ns:
            return star.delay(ns)
        if kind == "both":
            return star.gemm(ns, nbytes=600 * ns)
        return star.gemm(ns) if kind == "gemm" else star.sweep(ns)

    def program(self, stage: int, period: int) -> Program:
        """Steps that differ in what each rank works, one after the other."""
        p = Program(f"stage {stage}")
        ends = []
        for number in range(period):
            if number:
                p.end_step()
            ends.append(self._step(p, stage))
        if self.carried:
            for (_, update), (first, _) in pairwise(ends):
                p.depend(first, after=[update])
            p.carry(ends[-1][1], ends[0][0])
        return p

    def _step(self, p: Program, stage: int) -> tuple[int, int]:
        first = last = -1
        offloaded: list[int] = []
        for _ in range(self.num_micro_batches):
            last = self._pass(p, stage, 1, "out", "in")
            first = last if first < 0 else first
            offloaded += self._offload(p, last)
        for _ in range(self.num_micro_batches):
            last = self._pass(p, stage, -1, "back_out", "back_in", after=offloaded[-1:])
            if self.dp > 1:  # the two communicators of the same ranks may run at once
                for op, stream in zip(self.dp_ops, self.dp_streams, strict=False):
                    p.add(op, stream=stream, after=[last])
        return first, p.add(self.work(), stream="optimizer", after=[last])

    def _pass(self, p: Program, stage: int, way: int, there: str, back: str, after: Sequence[int] = ()) -> int:
        star, wait = self.star, list(after)
        if 0 <= stage - way < self.num_stages:
            wait.append(p.add(star.collective("recv", self.message, back), stream=back))
        op = p.add(self.work(), stream="main", after=wait)
        if self.tp > 1:
            op = p.add(self.tp_ops[way], stream=self.tp_stream, after=[op])
        op = p.add(self.work(), stream="main", after=[op])
        if 0 <= stage + way < self.num_stages:
            p.add(star.collective("send", self.message, there), stream=there, after=[op])
        return op

    def _offload(self, p: Program, after: int) -> list[int]:
        star, nbytes = self.star, self.draw(self.bytes())
        if self.offload == "pinned":
            down = p.add(star.copy("d2h", nbytes), stream="d2h", after=[after], takes={"pinned": 1})
            op = p.add(star.host(4 * nbytes), stream="host", after=[down], takes={"worker": 1}, gives={"worker": 1})
            return [p.add(star.copy("h2d", nbytes), stream="h2d", after=[op], gives={"pinned": 1})]
        if self.offload == "two pools":
            both = {"pinned": 1, "worker": 1}
            p.add(star.copy("d2h", nbytes), stream="d2h", after=[after], takes=both, gives=both)
            return [p.add(star.host(nbytes), stream="host", after=[after], takes={"worker": 1}, gives={"worker": 1})]
        if self.offload == "host":
            return [p.add(star.host(nbytes), stream="host", after=[after])]
        if self.offload == "drive":
            down = p.add(star.drive("nvme_write", nbytes), stream="drive", after=[after])
            return [p.add(star.drive("nvme_read", nbytes), stream="drive", after=[down])]
        return []


def levels(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Hierarchical where all nodes hold equally many members, else halving and doubling: its parts are no pipeline."""
    per_node = [len(members) for members in shape.nodes]
    return (hierarchical if len(set(per_node)) == 1 else halving_doubling)(kind, nbytes, shape)


DP_SLOTS = ("dp", "dp 2")
_DP_OPS = [
    ("all_reduce", "ring"),
    ("all_reduce", None),
    ("all_gather", "ring"),
    ("all_reduce", "halving_doubling"),
    ("all_gather", "bruck"),
    ("all_reduce", levels),
    ("all_to_all", None),
    ("barrier", None),
]
