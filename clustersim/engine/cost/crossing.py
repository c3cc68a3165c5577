"""Crossing paths: what bytes take on the way between a device and what is around it."""

from __future__ import annotations

from collections.abc import Sequence

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.topology.topology import Topology

__all__ = ["crossing"]

_LACKING = {
    "spread": ("memory", "its nodes have no sockets"),
    "far": ("memory", "its nodes have one socket"),
    "direct": ("direct", "nothing leads past the host"),
}
"""By the end of a path's name: what of an op asks for it, and why it is not there."""


def crossing(name: str, loads: Sequence[tuple[str, int]], device: int, topology: Topology) -> tuple[float, float, str]:
    """Cross some paths at once.

    Parameters
    ----------
    name : str
        of the op
    loads : Sequence[tuple[str, int]]
        (path, bytes)
    device : int
    topology : Topology

    Returns
    -------
    seconds : float
        at the busiest resource [s]
    latency : float
        of all paths together [s]
    bound : str
        kind of the busiest resource

    Raises
    ------
    BadInput
        when the topology has no path of that name
    """
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
