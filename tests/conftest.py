"""Records made by hand: a few lines for what an engine would have left behind."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from clustersim.hardware.gpu import GPU, Efficiency
from clustersim.hardware.kernel import Kernel
from clustersim.topology.resources import ResourceTable
from clustersim.topology.topology import Topology
from clustersim.trace.record import LaneRecord, Record
from clustersim.workload.job import GroupFamily, Job, Ledger
from clustersim.workload.op import Collective, Compute, Copy, HostWork, Op, Storage
from clustersim.workload.program import Program


def pytest_configure(config: pytest.Config) -> None:
    """Processes take files in their order, not the one of most tests first, as xdist does by itself.

    The files that take longest have few tests; they would be left for the end, and one process alone with the last.
    """
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


class Lane:
    """One simulated rank, op by op."""

    def __init__(self, scene: Scene, rank: int, multiplicity: int, job: int, groups: dict[str, str]) -> None:
        self.scene, self.rank, self.multiplicity, self.job, self.groups = scene, rank, multiplicity, job, groups
        self.program = Program(f"rank {rank}")
        self.times: list[list[tuple[int, int, int]]] = []
        self.causes: list[tuple[int, int]] = []
        self.waits: list[tuple[int, str]] = []

    def add(
        self,
        op: Op,
        *times: tuple[int, int, int],
        stream: str = "compute",
        cause: tuple[int, int] = (-1, -1),
        waits_for: str = "",
        **labels: object,
    ) -> int:
        """``op`` with (ready, start, end) in each round; ``cause`` is (lane, flat op number), ``waits_for`` a pool."""
        if waits_for:
            self.waits.append((len(self.times), waits_for))
            labels["takes"] = {waits_for: 1}
        self.times.append(list(times))
        self.causes.append(cause)
        return self.program.add(op, stream=stream, **labels)  # type: ignore[arg-type]

    def end_step(self) -> None:
        """What is added from now on belongs to the next step."""
        self.program.end_step()

    def freeze(self) -> LaneRecord:
        rounds = len(self.times[0])
        table = np.array(self.times, np.int64).reshape(len(self.times), rounds, 3).transpose(2, 1, 0).reshape(3, -1)
        cause = np.tile(np.array(self.causes, np.int32).T, rounds)
        return LaneRecord(
            job=self.job,
            rank=self.rank,
            multiplicity=self.multiplicity,
            arrays=self.program.arrays(),
            steps=rounds * self.program.period,
            ready_ns=table[0],
            start_ns=table[1],
            end_ns=table[2],
            cause_lane=cause[0],
            cause_op=cause[1],
            bound=np.zeros(table.shape[1], np.int32),
            groups=self.groups,
            resident=self.program.resident,
            pooled=self._pooled(rounds),
        )

    def _pooled(self, rounds: int) -> NDArray[np.int64]:
        pools = self.program.arrays().pools
        flat = [
            (number * len(self.times) + op, pools.index(pool)) for number in range(rounds) for op, pool in self.waits
        ]
        return np.array(flat, np.int64).reshape(-1, 2)


@dataclass
class FakeRun:
    """What analysis reads of a result."""

    record: Record
    topology: Topology
    fold: str = "exact"
    wall_s: float = 0.25
    warnings: tuple[str, ...] = ()


@dataclass
class Scene:
    """Lanes put together into a record."""

    lanes: list[Lane] = field(default_factory=list)
    families: list[tuple[GroupFamily, ...]] = field(default_factory=list)
    ledger: Ledger = field(
        default_factory=lambda: Ledger(tokens=4096, model_flops=10**9, model_flops_full_attention=2 * 10**9)
    )

    def lane(self, rank: int = 0, multiplicity: int = 1, job: int = 0, groups: dict[str, str] | None = None) -> Lane:
        axes = {axis: f"{axis}/{axis}/0" for axis in ("tp", "cp", "ep", "pp", "dp")}
        self.lanes.append(Lane(self, rank, multiplicity, job, axes if groups is None else groups))
        return self.lanes[-1]

    def record(self, status: str = "ok", message: str = "") -> Record:
        jobs, lane_of = [], []
        for job in range(1 + max(lane.job for lane in self.lanes)):
            mine = [k for k, lane in enumerate(self.lanes) if lane.job == job]
            standing = np.repeat(mine, [self.lanes[k].multiplicity for k in mine]).astype(np.int64)
            everyone = np.arange(len(standing))[None]
            slots = dict.fromkeys(slot for k in mine for slot in self.lanes[k].groups)
            families = tuple(GroupFamily(name=slot, members=everyone, slots=(slot,)) for slot in slots)
            jobs.append(
                Job(
                    name="train" if job == 0 else f"train {job}",
                    programs=tuple(self.lanes[k].program for k in mine),
                    program_of=standing - mine[0],
                    families=self.families[job] if self.families else families,
                    ledger=self.ledger,
                    plan={"tp": 2, "offload": {"ratio": 0.5}},
                )
            )
            lane_of.append(standing)
        return Record(
            jobs=tuple(jobs),
            lanes=tuple(lane.freeze() for lane in self.lanes),
            lane_of=tuple(lane_of),
            bounds=("tensor", "hbm"),
            coverage={"measured": 0.0, "interpolated": 0.0, "modelled": 1.0, "assumed": 0.0},
            num_events=7,
            status=status,
            message=message,
        )

    def run(self, *, memory_bytes: int = 10**9, tier_bytes: dict[str, int] | None = None, **record: str) -> FakeRun:
        made = self.record(**record)
        num_devices = max(job.num_ranks for job in made.jobs)
        return FakeRun(made, cluster(num_devices, memory_bytes, tier_bytes or {}))

    @staticmethod
    def compute(name: str = "mlp", **changes: object) -> Compute:
        kernels = (
            Kernel(kind="gemm", dtype="bf16", flops=1000, nbytes=10, count=2),
            Kernel(kind="memory", dtype="bf16", flops=7, nbytes=30),
        )
        return Compute(name=name, kind="mlp", kernels=kernels, **changes)  # type: ignore[arg-type]

    @staticmethod
    def optimizer() -> Compute:
        kernel = Kernel(kind="memory", dtype="fp32", flops=5, nbytes=50)
        return Compute(name="adam", kind="optimizer", kernels=(kernel,), category="optimizer")

    @staticmethod
    def collective(axis: str, kind: str = "all_reduce", nbytes: int = 64) -> Collective:
        return Collective(name=f"{kind} {axis}", kind=kind, slot=axis, nbytes=nbytes, axis=axis)

    @staticmethod
    def copy(kind: str = "h2d", nbytes: int = 32) -> Copy:
        return Copy(name=f"load {kind}", kind=kind, nbytes=nbytes)  # type: ignore[arg-type]

    @staticmethod
    def drive() -> Storage:
        return Storage(name="swap in", kind="nvme_read", nbytes=16)

    @staticmethod
    def host() -> HostWork:
        return HostWork(name="cpu adam", kind="adam", flops=3, nbytes=12)


def cluster(num_devices: int, memory_bytes: int, tier_bytes: dict[str, int]) -> Topology:
    """GPUs without wires, two to a node."""
    gpu = GPU(
        name="test-gpu",
        memory_bytes=memory_bytes,
        memory_bandwidth=1e12,
        tensor_flop_per_s={"bf16": 1e12},
        vector_flop_per_s=1e11,
        num_sms=10,
        launch_latency=1e-6,
        efficiency=Efficiency(
            gemm_peak=0.5,
            gemm_half_flops=1.0,
            attention_peak=0.5,
            attention_half_flops=1.0,
            memory_peak=0.5,
            memory_half_bytes=1.0,
        ),
    )
    return Topology(
        name="bench",
        gpus=(gpu,),
        gpu_of=np.zeros(num_devices, np.int64),
        node_of=np.arange(num_devices) // 2,
        cpus=(),
        cpu_of=np.zeros(num_devices, np.int64),
        resources=ResourceTable(()),
        router=lambda source, destination: np.empty((len(source), 0), np.int64),
        local={},
        tier_bytes=tier_bytes,
    )


@pytest.fixture
def scene() -> Scene:
    """An empty scene."""
    return Scene()


@pytest.fixture(scope="session")
def new_scene() -> type[Scene]:
    """The class, for tests that make many."""
    return Scene


@pytest.fixture(scope="session")
def star() -> ModuleType:
    """The small cluster of ``star.py``; a fixture, because tests are no package to import from."""
    spec = spec_from_file_location("star", Path(__file__).with_name("star.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["star"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands simulate where they are called: starting a process takes longer than most of what tests run in it."""
    for command in ("reproduce", "sweep", "validate"):
        monkeypatch.setattr(f"clustersim.cli.{command}.num_cores", lambda: 1)


@pytest.fixture(scope="session")
def least_time() -> Callable[[Callable[[], Any]], tuple[float, Any]]:
    """Processor time of some work [s], the least of three, and what it gives: other processes can only add to it."""

    def measured(work: Callable[[], Any]) -> tuple[float, Any]:
        took = []
        for _ in range(3):
            began = time.process_time()
            result = work()
            took.append(time.process_time() - began)
        return min(took), result

    return measured
