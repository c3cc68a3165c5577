"""Folding stays exact with cores, memory of several sockets, copies, drives, file systems and locks in the graph."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import clustersim as cs
from clustersim.engine.engine import Engine
from clustersim.engine.simulate import simulate
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU, Efficiency
from clustersim.hardware.link import Link
from clustersim.hardware.nic import NIC
from clustersim.hardware.storage import Drive
from clustersim.hardware.work_rate import WorkRate
from clustersim.topology.cluster import connect
from clustersim.topology.fabric import Ports
from clustersim.topology.fully_connected import fully_connected
from clustersim.topology.host import Host
from clustersim.topology.pcie_tree import pcie_tree
from clustersim.topology.storage import SharedStorage
from clustersim.topology.topology import Topology
from clustersim.trace.result import Result
from clustersim.workload.job import Job, Pool
from clustersim.workload.op import Compute, Copy, HostWork, Op, Storage
from clustersim.workload.program import Program

LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
CARD = GPU(
    name="gpu",
    memory_bytes=10**10,
    memory_bandwidth=1e11,
    tensor_flop_per_s={"bf16": 1e13},
    vector_flop_per_s=1e12,
    num_sms=10,
    launch_latency=1e-9,
    efficiency=Efficiency(
        gemm_peak=1.0,
        gemm_half_flops=0.0,
        attention_peak=1.0,
        attention_half_flops=0.0,
        memory_peak=1.0,
        memory_half_bytes=0.0,
    ),
)
NIC_CARD = NIC(name="nic", bandwidth=1e10, latency=1e-7)


@dataclass(frozen=True, repr=False)
class Case:
    """A job of host traffic on a small cluster."""

    topology: Topology
    job: Job
    perturb: dict[str, Any]
    steps: int

    def run(self, **options: Any) -> Result:
        return simulate(self.topology, self.job, steps=self.steps, perturb=self.perturb, **options)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        lines = [f"{self.topology}, {self.steps} steps, {self.perturb}, {dict(self.job.pools)}"]
        for program in self.job.programs:
            ops = program.arrays()
            lines += [f"  {ops.streams[s]}: {ops.ops[k]}" for s, k in zip(ops.stream, ops.op, strict=True)] + [""]
        printer.text("\n".join(lines))


@st.composite
def hosts(draw: st.DrawFn, num_gpus: int) -> Host:
    num_sockets = draw(st.sampled_from([n for n in (1, 2, 4) if num_gpus % n == 0]))
    cpu = CPU(
        name="cpu",
        num_cores=draw(st.sampled_from([3, 8])),
        memory_bytes=10**11,
        memory_bandwidth=draw(st.sampled_from([2e10, 5e10])),
        vector_flop_per_s=1e11,
        core_bandwidth=draw(st.sampled_from([None, 4e9])),
        work={"adam": WorkRate(efficiency=0.45), "call": WorkRate(efficiency=0.3, core_bandwidth=2e9, latency=1e-6)},
        pageable_bandwidth=3e9,
    )
    switched = num_gpus >= 4 and draw(st.booleans())
    per_switch = 2 if switched else 1
    link = Link(
        name="pcie",
        bandwidth=1e10,
        return_efficiency=draw(st.sampled_from([None, 0.7])),
        latency=1e-7,
        copy_latency=draw(st.sampled_from([0.0, 1e-6])),
    )
    other = Link(name="other", bandwidth=draw(st.sampled_from([7e9, 3e10])), latency=0.0)
    return Host(
        cpu=cpu,
        num_sockets=num_sockets if num_gpus // num_sockets >= per_switch else 1,
        link=link,
        pcie_switch_of=tuple(g // 2 for g in range(num_gpus)) if switched else (),
        root_complex=draw(st.sampled_from([None, other])),
        socket_link=draw(st.sampled_from([None, other])),
        drive=Drive(name="drive", capacity_bytes=10**12, read_bandwidth=6e9, write_bandwidth=2e9, latency=1e-6),
        num_drives=draw(st.integers(1, 3)),
        drive_uplink=draw(st.sampled_from([None, other])),
        request_bytes=1000,
        queue_depth=draw(st.sampled_from([1, 64])),
    )


@st.composite
def ops(draw: st.DrawFn, num_sockets: int) -> Op:
    nbytes = draw(st.sampled_from([1, 999, 40_000, 123_457]))
    memory = draw(st.sampled_from(["near", "spread", "far"] if num_sockets > 1 else ["near", "spread"]))
    match draw(st.sampled_from(["copy", "copy", "work", "work", "drive", "file system", "kernel"])):
        case "copy":
            kind, pageable = draw(st.sampled_from(["h2d", "d2h"])), draw(st.booleans())
            return Copy(name="copy", kind=kind, nbytes=nbytes, pageable=pageable, memory=memory)  # type: ignore[arg-type]
        case "work":
            kind, threads = draw(st.sampled_from(["adam", "call", "cast"])), draw(st.sampled_from([None, 1, 2, 8]))
            return HostWork(name=kind, kind=kind, nbytes=nbytes, threads=threads, memory=memory)
        case "drive":
            kind, direct = draw(st.sampled_from(["nvme_read", "nvme_write"])), draw(st.booleans())
            return Storage(name=kind, kind=kind, nbytes=nbytes, direct=direct)  # type: ignore[arg-type]
        case "file system":
            kind, files = draw(st.sampled_from(["fs_read", "fs_write"])), draw(st.integers(0, 2))
            return Storage(name=kind, kind=kind, nbytes=nbytes, files=files)  # type: ignore[arg-type]
    kernel = cs.Kernel(kind="memory", dtype="bf16", flops=0, nbytes=10 * nbytes)
    return Compute(name="kernel", kind="norm", kernels=(kernel,))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    num_nodes, num_gpus = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 4]))
    host = draw(hosts(num_gpus))
    node = pcie_tree(gpu=CARD, num_gpus=num_gpus, host=host)
    ports = Ports.spread(nic=NIC_CARD, nics_per_node=1, num_gpus=num_gpus)
    wire = Link(name="wire", bandwidth=1e10, latency=1e-7)
    fabric = fully_connected(ports=ports, num_nodes=num_nodes, link=wire) if num_nodes > 1 else None
    plain = connect(node, fabric, name="small", num_nodes=num_nodes)
    client = draw(st.sampled_from([None, 2e9]))
    topology = SharedStorage(
        read_bandwidth=8e9,
        write_bandwidth=3e9,
        node_read_bandwidth=client,
        node_write_bandwidth=client,
        metadata_latency=1e-7,
        nic=NIC_CARD,
    ).join(plain)
    num_ranks = num_nodes * num_gpus
    programs = [draw(_programs(host.num_sockets)) for _ in range(draw(st.integers(1, 2)))]
    program_of = np.array(draw(st.lists(st.integers(0, len(programs) - 1), min_size=num_ranks, max_size=num_ranks)))
    if draw(st.booleans()):
        program_of = np.zeros(num_ranks, dtype=np.int64)
    pools = {
        "lock": Pool(capacity=1, scope=draw(st.sampled_from(["rank", "node", "job"]))),
        "buffers": Pool(capacity=2, scope=draw(st.sampled_from(["rank", "node"]))),
    }
    job = Job(name="job", programs=tuple(programs), program_of=program_of, pools=pools)
    names = topology.resources.names()
    links = st.dictionaries(st.sampled_from(names), st.sampled_from([0.5, 0.3]), max_size=1)
    slow = st.dictionaries(st.integers(0, num_ranks - 1), st.sampled_from([1.5]), max_size=1)
    perturb = {"slow_links": draw(links), "slow_ranks": draw(slow)}
    return Case(topology=topology, job=job, perturb=perturb, steps=draw(st.integers(1, 2)))


@st.composite
def _programs(draw: st.DrawFn, num_sockets: int) -> Program:
    program = Program()
    streams = ("a", "b", "c")
    for number in range(draw(st.integers(1, 7))):
        pool = draw(st.sampled_from([None, None, "lock", "buffers"]))
        held = {} if pool is None else {pool: 1}
        after = [draw(st.integers(0, number - 1))] if number and draw(st.booleans()) else []
        op = draw(ops(num_sockets))
        program.add(op, stream=draw(st.sampled_from(streams)), after=after, takes=held, gives=held)
    return program


def times(run: Result, rank: int) -> tuple[list[int], list[int]]:
    lane = run.record.lanes[run.record.lane_of[0][rank]]
    return lane.start_ns.tolist(), lane.end_ns.tolist()


@settings(LAW, max_examples=150)
@given(data=st.data())
def test_folded_is_full(data: st.DataObject) -> None:
    case = data.draw(cases())
    full = case.run(fold=False)
    folded = case.run(fold=True, shuffle=random.Random(data.draw(st.integers(0, 9))).shuffle)
    for rank in range(case.job.num_ranks):
        assert times(folded, rank) == times(full, rank)
    assert len(folded.record.lanes) <= len(full.record.lanes) == case.job.num_ranks


@settings(LAW, max_examples=60)
@given(data=st.data())
def test_no_resource_gives_more_than_it_has(data: st.DataObject) -> None:
    """Cores and drives among them: what is used of them is time."""
    case = data.draw(cases())
    for rates in case.run(fold=data.draw(st.booleans())).usage:
        assert rates.used.max(initial=0.0) <= rates.capacity * (1 + 1e-9)


@settings(LAW, max_examples=30)
@given(data=st.data())
def test_folded_is_full_while_a_resource_changes(data: st.DataObject) -> None:
    case = data.draw(cases())
    name = data.draw(st.sampled_from(case.topology.resources.names()))
    full_capacity = float(case.topology.resources.capacity[case.topology.resources.find(name)])

    def behaviour(engine: Engine) -> None:
        engine.launch(0, 0)
        engine.at(5_000, lambda e: e.set_capacity(name, 0.3 * full_capacity))

    full, folded = (case.run(fold=fold, behaviour=behaviour, varying=[name]) for fold in (False, True))
    for rank in range(case.job.num_ranks):
        assert times(folded, rank) == times(full, rank)


def test_nodes_that_do_the_same_are_one() -> None:
    """64 nodes of the same job of copies, host work, drives and a lock fold to the ranks of one node."""
    topology = cs.load_topology("dgx-a100", nodes=64)
    program = Program()
    held = {"lock": 1}
    read = program.add(Storage(name="read", kind="nvme_read", nbytes=10**9), stream="drive", takes=held, gives=held)
    adam = program.add(HostWork(name="adam", kind="adam", nbytes=10**9), stream="host", after=[read])
    program.add(Copy(name="copy", kind="h2d", nbytes=10**8, memory="spread"), stream="h2d", after=[adam])
    of: NDArray[np.int64] = np.zeros(512, dtype=np.int64)
    job = Job(name="job", programs=(program,), program_of=of, pools={"lock": Pool(capacity=1, scope="node")})
    run = simulate(topology, job)
    assert len(run.record.lanes) == 8
    assert [lane.multiplicity for lane in run.record.lanes] == [64] * 8
    turns = sorted(int(lane.end_ns[0]) for lane in run.record.lanes)
    assert turns == [pytest.approx(turns[0] * (k + 1), rel=1e-6) for k in range(8)]
