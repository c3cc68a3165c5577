"""Copies, and reads and writes of storage."""

from __future__ import annotations

from clustersim.engine.cost.crossing import crossing
from clustersim.engine.cost.local_cost import LocalCost, whole_ns
from clustersim.engine.cost.paths import paths
from clustersim.faults import BadInput, Fault
from clustersim.hardware.cpu import CPU
from clustersim.topology.topology import Topology
from clustersim.workload.op import Copy, Storage

__all__ = ["transfer_cost"]


def transfer_cost(op: Copy | Storage, cpu: CPU, device: int, topology: Topology) -> LocalCost:
    """A copy or an access to storage: as fast as the narrowest it crosses, after the latencies of all."""
    loads = [(name, n) for name, n in paths(op) if name != "cores"]
    seconds, latency, bound = crossing(op.name, loads, device, topology)
    if isinstance(op, Storage):
        latency += op.files * topology.local[loads[0][0]].per_file
    elif op.pageable and op.kind != "d2d":
        if cpu.pageable_bandwidth is None:
            rule = f"cannot be told: {cpu.name} has no pageable_bandwidth"
            raise BadInput([Fault(key=f"{op.name}.pageable", value=True, rule=rule, nearest=False)])
        staged = op.nbytes / cpu.pageable_bandwidth
        if staged > seconds:
            seconds, bound = staged, "pageable"
    if isinstance(op, Copy):
        if op.pageable and "cores" in topology.local:
            loads.append(("cores", whole_ns(seconds + latency)))
        seconds *= op.turns
    ns = whole_ns(seconds + latency)
    return LocalCost(ns, 0, bound, {"modelled": seconds + latency}, tuple(loads))
