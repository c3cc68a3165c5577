"""What a rank's own ops take alone, and what they ask of the resources around it: kernels, copies, drives, the host."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Cost, CostModel, Provenance
from clustersim.topology.topology import Topology
from clustersim.workload.op import Collective, Compute, Copy, Delay, HostLaunch, HostWork, Op, Storage

__all__ = ["LocalCost", "local_cost", "paths"]


@dataclass(frozen=True, slots=True)
class LocalCost:
    """One op alone on one kind of device.

    Attributes
    ----------
    ns : int
        duration [ns]; at least 1 for any work
    sm_ns : int
        the part of it that grows as SMs are taken by a collective [ns]
    bound : str
        what sets it: ``tensor``, ``vector``, ``hbm``, ``launch``, or the path of a copy
    provenance : dict[Provenance, float]
        seconds by provenance, for the coverage report [s]
    kernels : tuple[Cost, ...]
        of each kernel of a block of them, without the slowdown
    """

    ns: int
    sm_ns: int
    bound: str
    provenance: dict[Provenance, float]
    kernels: tuple[Cost, ...] = ()


def paths(op: Op) -> tuple[tuple[str, int], ...]:
    """(local path, bytes over it) of an op: everything a rank asks of shared resources on its own.

    A copy between GPU and host crosses the host's DRAM by its path and the GPU's own memory besides; a copy within the
    GPU reads and writes it.
    """
    match op:
        case Compute():
            return (("hbm", op.nbytes),) if op.nbytes else ()
        case Copy(kind="d2d"):
            return (("hbm", 2 * op.nbytes),)
        case Copy():
            return ((op.kind, op.nbytes), ("hbm", op.nbytes))
        case Storage():
            return ((op.kind, op.nbytes),)
        case HostWork():
            return (("dram", op.nbytes),) if op.nbytes else ()
        case Collective() | Delay() | HostLaunch():
            return ()


def local_cost(
    op: Op, gpu: GPU, cpu: CPU, device: int, topology: Topology, cost: CostModel, slowdown: float
) -> LocalCost:
    """Cost of ``op`` on ``device``.

    Parameters
    ----------
    slowdown : float
        factor on what the GPU and the CPU compute (a straggler has more than 1); copies keep their links' speed

    Raises
    ------
    BadInput
        when the topology has no path of that kind, a drive where the node has none, the GPU no units for a dtype, or
        the CPU no launch times
    """
    match op:
        case Compute():
            return _compute(op, gpu, cost, slowdown)
        case Delay():
            return LocalCost(
                round(op.measured_ns * slowdown), 0, "measured", {"measured": op.measured_ns * slowdown / 1e9}
            )
        case HostWork():
            seconds = op.flops / cpu.vector_flop_per_s
            memory = op.nbytes / (cpu.memory_bandwidth * cpu.memory_efficiency)
            bound = "dram" if memory > seconds else "cpu"
            return LocalCost(
                _ns(max(seconds, memory) * slowdown), 0, bound, {"assumed": max(seconds, memory) * slowdown}
            )
        case HostLaunch():
            provenance = {word: seconds * slowdown for word, seconds in _launch(op, cpu).items()}
            return LocalCost(_ns(sum(provenance.values())), 0, "host", provenance)
        case Copy() | Storage():
            seconds, bound = _copy(op, device, topology)
            return LocalCost(_ns(seconds), 0, bound, {"modelled": seconds})
        case Collective():
            raise TypeError(f"{op.name}: a collective has no local cost")


def _compute(op: Compute, gpu: GPU, cost: CostModel, slowdown: float) -> LocalCost:
    seconds: dict[str, float] = {}
    provenance: dict[Provenance, float] = {}
    costs: list[Cost] = []
    for kernel in op.kernels:
        try:
            of = cost(kernel, gpu)
        except KeyError as error:
            what = "form" if kernel.form and kernel.dtype in gpu.tensor_flop_per_s else "dtype"
            key, rule = f"{op.name}.{what}", f"cannot run on {gpu.name}: {error.args[0]}"
            raise BadInput([Fault(key=key, value=getattr(kernel, what), rule=rule)]) from error
        costs.append(of)
        seconds[of.bound] = seconds.get(of.bound, 0.0) + of.seconds * slowdown
        provenance[of.provenance] = provenance.get(of.provenance, 0.0) + of.seconds * slowdown
    total = sum(seconds.values())
    sm_bound = seconds.get("tensor", 0.0) + seconds.get("vector", 0.0)
    bound = max(seconds, key=lambda b: seconds[b]) if seconds else "launch"
    return LocalCost(_ns(total), min(_ns(sm_bound), _ns(total)), bound, provenance, tuple(costs))


def _launch(op: HostLaunch, cpu: CPU) -> dict[Provenance, float]:
    """Seconds by provenance."""
    times = cpu.launch
    if times is None:
        rule = f"cannot be told: {cpu.name} has no launch times"
        raise BadInput([Fault(key="plan.launch", value=op.kind, rule=rule, nearest="none")])
    spent = {
        "operator": op.operators * times.operator,
        "module": op.half_modules * times.module / 2,
        "compiled": op.compiled * times.compiled,
        "entry": op.entries * times.entry,
        "graph": op.graphs * times.graph,
        "wait": op.waits * times.wait,
    }
    seconds: dict[Provenance, float] = {}
    for name, each in spent.items():
        word: Provenance = "modelled" if cpu.sources.get(f"launch.{name}", "").startswith("measured") else "assumed"
        seconds[word] = seconds.get(word, 0.0) + each
    return {word: each for word, each in seconds.items() if each}


def _copy(op: Copy | Storage, device: int, topology: Topology) -> tuple[float, str]:
    seconds, latency, bound = 0.0, 0.0, ""
    for name, nbytes in paths(op):
        if name not in topology.local:
            rule, nearest = f"is no path of {topology.name}: its nodes have none", nearest_name(name, topology.local)
            raise BadInput([Fault(key=f"{op.name}.kind", value=name, rule=rule, nearest=nearest)])
        path = topology.local[name]
        rows = path.rows[device]
        latency += path.latency + float(topology.resources.latency_ns[rows[rows >= 0]].sum()) / 1e9
        for row, per_byte in zip(rows, path.per_byte, strict=True):
            if row >= 0 and (took := nbytes * per_byte / topology.resources.capacity[row]) >= seconds:
                seconds, bound = took, topology.resources.kinds[topology.resources.kind[row]]
    return seconds + latency, bound


def _ns(seconds: float) -> int:
    """Whole nanoseconds, rounded up; what floats round up is far inside the 2^-40 of head-room of resources."""
    return math.ceil(seconds * 1e9 * (1 - 2**-46))


def path_loads(ops: tuple[Op, ...], path: str, per_byte: float) -> NDArray[np.int64]:
    """Load of each op on one hop of ``path``, shape (len(ops),): whole bytes, or nanoseconds of a drive."""
    nbytes = [sum(n for name, n in paths(op) if name == path) for op in ops]
    return np.array([math.ceil(n * per_byte) for n in nbytes], dtype=np.int64)
