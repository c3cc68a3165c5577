"""What a rank's own ops take alone, and what they ask of the resources around it: kernels, copies, drives, the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Cost, CostModel, Provenance
from clustersim.topology.topology import Topology
from clustersim.workload.op import Collective, Compute, Copy, Delay, HostLaunch, HostWork, Memory, Op, Storage

__all__ = ["LocalCost", "gpus_per_socket", "local_cost", "path_loads", "paths"]


_LACKING = {
    "spread": ("memory", "its nodes have no sockets"),
    "far": ("memory", "its nodes have one socket"),
    "direct": ("direct", "nothing leads past the host"),
}
"""By the end of a path's name: what of an op asks for it, and why it is not there."""


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
    loads : tuple[tuple[str, int], ...]
        (local path, what is asked of it): bytes, or core-nanoseconds of ``cores``
    kernels : tuple[Cost, ...]
        of each kernel of a block of them, without the slowdown
    crowded_ns : int
        ``sm_ns`` times the device's crowding: while k of n SMs are taken, the op lasts k / (n - k) of it longer [ns]
    """

    ns: int
    sm_ns: int
    bound: str
    provenance: dict[Provenance, float]
    loads: tuple[tuple[str, int], ...] = ()
    kernels: tuple[Cost, ...] = ()
    crowded_ns: int = 0


def paths(op: Op) -> tuple[tuple[str, int], ...]:
    """(local path, bytes that the op itself moves over it): everything a rank asks of shared resources on its own.

    A copy between GPU and host crosses the host's DRAM by its path and the GPU's own memory besides; a copy within the
    GPU reads and writes it. A copy of memory that is not pinned is also read and written by a thread of the driver.
    What a device is really asked for stands in :attr:`LocalCost.loads`. Work without bytes counts its FLOP.
    """
    match op:
        case Compute():
            return (("hbm", op.nbytes),) if op.nbytes else ()
        case Copy(kind="d2d"):
            return (("hbm", 2 * op.nbytes),)
        case Copy():
            own = ((_placed(op.kind, op.memory), op.nbytes), ("hbm", op.nbytes))
            return (*own, (_placed("dram", op.memory), 2 * op.nbytes), ("cores", 0)) if op.pageable else own
        case Storage():
            return ((f"{op.kind}.direct", op.nbytes), ("hbm", op.nbytes)) if op.direct else ((op.kind, op.nbytes),)
        case HostWork():
            across = () if op.memory == "near" else ((f"socket.{op.memory}", op.nbytes),)
            return ((_placed("dram", op.memory), op.nbytes), *across, ("cores", 0 if op.nbytes else op.flops))
        case Collective() | Delay() | HostLaunch():
            return ()


def _placed(path: str, memory: Memory) -> str:
    return path if memory == "near" else f"{path}.{memory}"


def gpus_per_socket(topology: Topology) -> NDArray[np.int64]:
    """How many devices share each device's socket, shape (num_devices,)."""
    _, socket, count = np.unique(topology.local["dram"].rows[:, 0], return_inverse=True, return_counts=True)
    return count[socket.reshape(-1)].astype(np.int64)


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
        the CPU no launch times or no rate for memory that is not pinned
    """
    match op:
        case Compute():
            return _compute(op, gpu, cost, slowdown)
        case Delay():
            return LocalCost(
                round(op.measured_ns * slowdown), 0, "measured", {"measured": op.measured_ns * slowdown / 1e9}
            )
        case HostWork():
            return _host_work(op, cpu, device, topology, slowdown)
        case HostLaunch():
            provenance = {word: seconds * slowdown for word, seconds in _launch(op, cpu).items()}
            return LocalCost(_ns(sum(provenance.values())), 0, "host", provenance)
        case Copy() | Storage():
            return _transfer(op, cpu, device, topology)
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
    sm_ns = min(_ns(sm_bound), _ns(total))
    crowded_ns = round(sm_ns * gpu.crowding)
    return LocalCost(_ns(total), sm_ns, bound, provenance, paths(op), tuple(costs), crowded_ns)


_PASSES = {
    "eager": "operator",
    "layers": "layer",
    "modules": "module",
    "compiled": "operator",
    "cuda_graphs": "module",
}
"""How a framework runs -> what a kernel of a forward pass that it issues by itself takes on a CPU's card."""


def _launch(op: HostLaunch, cpu: CPU) -> dict[Provenance, float]:
    """Seconds by provenance."""
    times = cpu.launch
    if times is None:
        rule = f"cannot be told: {cpu.name} has no launch times"
        raise BadInput([Fault(key="plan.launch", value=op.kind, rule=rule, nearest="none")])
    forward = _PASSES[op.kind]
    spent = (
        (forward, op.forward),
        (f"{forward}_backward", op.backward),
        ("expert", op.experts),
        ("expert_backward", op.experts_backward),
        ("hook", op.hooks),
        ("hook_backward", op.hooks_backward),
        ("operator", op.operators),
        ("collective", op.collectives),
        ("compiled", op.compiled),
        ("entry", op.entries),
        ("graph", op.graphs),
        ("wait", op.waits),
    )
    seconds: dict[Provenance, float] = {}
    for name, calls in spent:
        word: Provenance = "modelled" if cpu.sources.get(f"launch.{name}", "").startswith("measured") else "assumed"
        seconds[word] = seconds.get(word, 0.0) + calls * float(getattr(times, name))
    return {word: each for word, each in seconds.items() if each}


def _host_work(op: HostWork, cpu: CPU, device: int, topology: Topology, slowdown: float) -> LocalCost:
    """The longer of what its threads take and what its bytes take, after the cost of the call.

    A kind of work that reaches a part of what streaming code does asks the DRAM for so much more for each byte: one
    socket full of it fills the socket's DRAM, and beside it DMA gets its share.
    """
    rate = cpu.rate(op.kind)
    share = op.part * cpu.num_cores / float(gpus_per_socket(topology)[device])
    threads = min(share if op.threads is None else op.threads, cpu.num_cores)
    inflated = math.ceil(op.nbytes * max(1.0, cpu.memory_efficiency / rate.efficiency))
    loads = [(name, inflated if name.startswith("dram") else n) for name, n in paths(op) if name != "cores"]
    loads = [(name, n) for name, n in loads if n and not (name.startswith("socket") and name not in topology.local)]
    seconds, latency, bound = _crossing(op.name, loads, device, topology)
    working = max(
        op.nbytes / (threads * cpu.core_rate(op.kind)), op.flops * cpu.num_cores / (cpu.vector_flop_per_s * threads)
    )
    if working > seconds * (1 + 1e-9):  # at the socket's ceiling both are the same but for rounding
        seconds, bound = working, "cores"
    seconds = (seconds + latency + rate.latency) * slowdown
    ns = _ns(seconds)
    told = cpu.sources.get(f"work.{op.kind}.efficiency", "").startswith("measured")
    # rounded down, so that the even shares of all GPUs of a socket fit on its cores
    held = (("cores", math.floor(threads * ns)),) if "cores" in topology.local else ()
    return LocalCost(ns, 0, bound, {"modelled" if told else "assumed": seconds}, (*loads, *held))


def _transfer(op: Copy | Storage, cpu: CPU, device: int, topology: Topology) -> LocalCost:
    """A copy or an access to storage: as fast as the narrowest it crosses, after the latencies of all."""
    loads = [(name, n) for name, n in paths(op) if name != "cores"]
    seconds, latency, bound = _crossing(op.name, loads, device, topology)
    if isinstance(op, Storage):
        latency += op.files * topology.local[loads[0][0]].per_file
    elif op.pageable and op.kind != "d2d":
        if cpu.pageable_bandwidth is None:
            rule = f"cannot be told: {cpu.name} has no pageable_bandwidth"
            raise BadInput([Fault(key=f"{op.name}.pageable", value=True, rule=rule, nearest=False)])
        staged = op.nbytes / cpu.pageable_bandwidth
        if staged > seconds:
            seconds, bound = staged, "pageable"
    ns = _ns(seconds + latency)
    if isinstance(op, Copy) and op.pageable and "cores" in topology.local:
        loads.append(("cores", ns))
    return LocalCost(ns, 0, bound, {"modelled": seconds + latency}, tuple(loads))


def _crossing(name: str, loads: Sequence[tuple[str, int]], device: int, topology: Topology) -> tuple[float, float, str]:
    """Time at the busiest resource of some paths and its kind, and the latency of all of them [s]."""
    seconds, latency, bound = 0.0, 0.0, ""
    resources = topology.resources
    for path_name, load in loads:
        if path_name not in topology.local:
            end = path_name.rpartition(".")[2]
            field, why = _LACKING.get(end, ("kind", "its nodes have none"))
            rule, near = f"is no path of {topology.name}: {why}", nearest_name(path_name, topology.local)
            raise BadInput([Fault(key=f"{name}.{field}", value=path_name, rule=rule, nearest=near)])
        path = topology.local[path_name]
        rows = path.rows[device]
        latency += path.latency + float(resources.latency_ns[rows[rows >= 0]].sum()) / 1e9
        if load / path.bandwidth > seconds:
            seconds, bound = load / path.bandwidth, "requests" if path_name.startswith("nvme") else "socket"
        for row, per_byte in zip(rows, path.per_byte, strict=True):
            if row >= 0 and (took := load * per_byte / resources.capacity[row]) >= seconds:
                seconds, bound = took, resources.kinds[resources.kind[row]]
    return seconds, latency, bound


def _ns(seconds: float) -> int:
    """Whole nanoseconds, rounded up; what floats round up is far inside the 2^-40 of head-room of resources."""
    return math.ceil(seconds * 1e9 * (1 - 2**-46))


def path_loads(costs: Sequence[LocalCost | None], path: str, per_byte: float) -> NDArray[np.int64]:
    """Load of each op on one hop of ``path``, shape (len(costs),): whole bytes, or nanoseconds of a drive or a core."""
    asked = [sum(n for name, n in cost.loads if name == path) if cost is not None else 0 for cost in costs]
    return np.array([math.ceil(n * per_byte) for n in asked], dtype=np.int64)
