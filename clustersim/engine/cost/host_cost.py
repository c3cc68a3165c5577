"""Work of the host: issuing kernels, and computing on the CPU."""

from __future__ import annotations

import math

from clustersim.engine.cost.crossing import crossing
from clustersim.engine.cost.local_cost import LocalCost, whole_ns
from clustersim.engine.cost.paths import gpus_per_socket, paths
from clustersim.faults import BadInput, Fault
from clustersim.hardware.cpu import CPU
from clustersim.hardware.kernel import Provenance
from clustersim.topology.topology import Topology
from clustersim.workload.op import HostLaunch, HostWork

__all__ = ["launch_cost", "work_cost"]

_PASSES = {
    "eager": "operator",
    "layers": "layer",
    "modules": "module",
    "compiled": "operator",
    "cuda_graphs": "module",
}
"""How a framework runs -> what a kernel of a forward pass that it issues by itself takes on a CPU's card."""


def launch_cost(op: HostLaunch, cpu: CPU, slowdown: float) -> LocalCost:
    """What the thread that issues kernels takes for some of them; :class:`BadInput` without launch times."""
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
        ("collection", op.collections),
    )
    seconds: dict[Provenance, float] = {}
    for name, calls in spent:
        word: Provenance = "modelled" if cpu.sources.get(f"launch.{name}", "").startswith("measured") else "assumed"
        seconds[word] = seconds.get(word, 0.0) + calls * float(getattr(times, name))
    provenance = {word: each * slowdown for word, each in seconds.items() if each}
    return LocalCost(whole_ns(sum(provenance.values())), 0, "host", provenance)


def work_cost(op: HostWork, cpu: CPU, device: int, topology: Topology, slowdown: float) -> LocalCost:
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
    seconds, latency, bound = crossing(op.name, loads, device, topology)
    working = max(
        op.nbytes / (threads * cpu.core_rate(op.kind)), op.flops * cpu.num_cores / (cpu.vector_flop_per_s * threads)
    )
    if working > seconds * (1 + 1e-9):  # at the socket's ceiling both are the same but for rounding
        seconds, bound = working, "cores"
    seconds = (seconds + latency + rate.latency) * slowdown
    ns = whole_ns(seconds)
    told = cpu.sources.get(f"work.{op.kind}.efficiency", "").startswith("measured")
    # rounded down, so that the even shares of all GPUs of a socket fit on its cores
    held = (("cores", math.floor(threads * ns)),) if "cores" in topology.local else ()
    return LocalCost(ns, 0, bound, {"modelled" if told else "assumed": seconds}, (*loads, *held))
