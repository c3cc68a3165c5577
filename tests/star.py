"""A small cluster made by hand, with numbers that can be worked out in the head.

Nodes of GPUs on NVLink, one NIC a GPU, leaves of some nodes each under an over-subscribed spine. Each GPU has its HBM
and its PCIe lanes; the GPUs of a node share its DRAM and its drive. 1000 FLOP, or 1000 B of HBM, take 1 ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU, Efficiency
from clustersim.hardware.kernel import Kernel
from clustersim.topology.resources import Block, ResourceTable
from clustersim.topology.topology import LocalPath, Topology
from clustersim.trace.result import Result
from clustersim.workload.job import GroupFamily, Job
from clustersim.workload.op import Collective, Compute, Copy, Delay, HostWork, Storage
from clustersim.workload.program import Program

IDEAL = Efficiency(
    gemm_peak=1, gemm_half_flops=0, attention_peak=1, attention_half_flops=0, memory_peak=1, memory_half_bytes=0
)
CARD = GPU(
    name="gpu",
    memory_bytes=10**10,
    memory_bandwidth=1e12,
    tensor_flop_per_s={"bf16": 1e12},
    vector_flop_per_s=1e12,
    num_sms=100,
    launch_latency=1e-25,  # less than a float can see beside a nanosecond
    efficiency=IDEAL,
)
SLOW_CARD = replace(CARD, name="slow gpu", tensor_flop_per_s={"bf16": 8e11}, num_sms=64)
HOST = CPU(
    name="cpu",
    num_cores=8,
    memory_bytes=10**12,
    memory_bandwidth=1e11,
    vector_flop_per_s=1e11,
    memory_efficiency=1.0,
)


def cluster(
    num_nodes: int,
    per_node: int,
    *,
    leaf: int = 1,
    over: float = 1.0,
    nvlink: float = 1e11,
    nic: float = 1e10,
    dram: float = 1e11,
    pcie: float = 2e10,
    latency: float = 0.0,
    gpus: Sequence[GPU] = (CARD,),
    gpu_of: Sequence[int] | None = None,
) -> Topology:
    """``leaf`` nodes a leaf switch, whose uplink has 1/``over`` of its nodes' NICs; ``latency`` [s] a link."""
    n = num_nodes * per_node
    num_leaves = -(-num_nodes // leaf)
    spine = nic * per_node * leaf / over

    def block(kind: str, count: int, capacity: float, label: str, wire: bool = True) -> Block:
        return Block(kind=kind, shape=(count,), capacity=capacity, latency=latency * wire, label=label)

    table = ResourceTable(
        [
            block("nvlink", n, nvlink, "nvlink{}.up"),
            block("nvlink", n, nvlink, "nvlink{}.down"),
            block("nic", n, nic, "nic{}.tx"),
            block("nic", n, nic, "nic{}.rx"),
            block("leaf_up", num_leaves, spine, "leaf{}.up"),
            block("leaf_down", num_leaves, spine, "leaf{}.down"),
            block("hbm", n, 1e12, "hbm{}", wire=False),
            block("pcie", n, pcie, "pcie{}.up", wire=False),
            block("pcie", n, pcie, "pcie{}.down", wire=False),
            block("dram", num_nodes, dram, "dram{}", wire=False),
            block("drive", num_nodes, 1e9, "drive{}", wire=False),
        ]
    )
    first = table.first
    device = np.arange(n)

    def router(source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
        hops = np.full((len(source), 4), -1, dtype=np.int64)
        near = source // per_node == destination // per_node
        hops[:, 0] = np.where(near, first[0] + source, first[2] + source)
        hops[:, 3] = np.where(near, first[1] + destination, first[3] + destination)
        up, down = source // (per_node * leaf), destination // (per_node * leaf)
        far = up != down
        hops[far, 1] = first[4] + up[far]
        hops[far, 2] = first[5] + down[far]
        return hops

    def local(*columns: NDArray[np.int64], per_byte: float = 1.0) -> LocalPath:
        return LocalPath(rows=np.stack(columns, axis=1), per_byte=np.full(len(columns), per_byte))

    node = device // per_node
    return Topology(
        name="star",
        gpus=tuple(gpus),
        gpu_of=np.zeros(n, np.int64) if gpu_of is None else np.asarray(gpu_of, dtype=np.int64),
        node_of=node,
        cpus=(HOST,),
        cpu_of=np.zeros(n, np.int64),
        resources=table,
        router=router,
        local={
            "hbm": local(first[6] + device),
            "h2d": local(first[7] + device, first[9] + node),
            "d2h": local(first[8] + device, first[9] + node),
            "dram": local(first[9] + node),
            "nvme_read": local(first[10] + node, per_byte=0.25),  # 4 GB/s
            "nvme_write": local(first[10] + node, per_byte=0.5),  # 2 GB/s
        },
    )


def gemm(ns: int, *, nbytes: int = 0, name: str = "gemm") -> Compute:
    """Bound by the SMs: ``ns`` alone."""
    kernel = Kernel(kind="gemm", dtype="bf16", flops=1000 * ns, nbytes=nbytes)
    return Compute(name=name, kind="mlp", kernels=(kernel,))


def sweep(ns: int, *, name: str = "sweep") -> Compute:
    """Bound by HBM: ``ns`` alone, at all of its bandwidth."""
    kernel = Kernel(kind="memory", dtype="bf16", flops=0, nbytes=1000 * ns)
    return Compute(name=name, kind="norm", kernels=(kernel,))


def collective(kind: str, nbytes: int, slot: str = "dp", *, name: str = "", algorithm: Any = "") -> Collective:
    """A ring where there is one, so that the bytes are known."""
    if algorithm == "":
        algorithm = "ring" if kind in ("all_reduce", "all_gather", "reduce_scatter", "broadcast") else None
    return Collective(name=name or kind, kind=kind, slot=slot, nbytes=nbytes, axis="dp", algorithm=algorithm)


def copy(kind: str, nbytes: int, *, name: str = "") -> Copy:
    return Copy(name=name or kind, kind=kind, nbytes=nbytes)  # type: ignore[arg-type]


def drive(kind: str, nbytes: int, *, name: str = "") -> Storage:
    return Storage(name=name or kind, kind=kind, nbytes=nbytes)  # type: ignore[arg-type]


def host(nbytes: int, *, name: str = "adam") -> HostWork:
    return HostWork(name=name, kind="adam", flops=0, nbytes=nbytes)


def delay(ns: int, *, name: str = "delay") -> Delay:
    return Delay(name=name, kind="delay", measured_ns=ns)


def program(*ops: Any, stream: str = "main") -> Program:
    """Ops one after the other."""
    made = Program()
    for op in ops:
        made.add(op, stream=stream)
    return made


def job(*programs: Program, name: str = "job", **fields: Any) -> Job:
    """Rank r runs ``programs[r]``."""
    return Job(name=name, programs=programs, program_of=np.arange(len(programs)), **fields)


def groups(slot: str | tuple[str, ...], *members: Sequence[int]) -> GroupFamily:
    """Groups of one family: ``groups("dp", [0, 1], [2, 3])``."""
    slots = (slot,) if isinstance(slot, str) else slot
    return GroupFamily(name=slots[0], members=np.array(members, dtype=np.int64), slots=slots)


def times(run: Result, rank: int, job: int = 0) -> Mapping[str, tuple[int, int]]:
    """Name of each op of a rank -> (start, end) [ns]; the last one of a name."""
    lane = run.record.lanes[run.record.lane_of[job][rank]]
    names = [lane.arrays.ops[k].name for k in lane.ops]
    return dict(zip(names, zip(lane.start_ns.tolist(), lane.end_ns.tolist(), strict=True), strict=True))
