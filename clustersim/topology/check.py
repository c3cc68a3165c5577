"""Whether a topology can be simulated: every pair reachable, alike both ways, over links that carry something."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import Fault
from clustersim.topology.topology import Topology

__all__ = ["check"]

ALL_PAIRS = 512
"""Devices up to which every pair is looked at."""


def check(topology: Topology) -> list[Fault]:
    """What is wrong with ``topology``.

    Looks at every resource, and at every pair of devices up to 512 of them; above that at each device and those
    1, 2, 4, 8 … further on, which crosses every level of a regular cluster.

    Returns
    -------
    list[Fault]
        resources that carry nothing, pairs without a route, routes over resources that do not exist, pairs whose
        narrowest resource differs between the two directions; of each kind at most the first ten
    """
    faults = [
        Fault(
            key=topology.resources.name(int(row)),
            value=int(topology.resources.capacity[row]),
            rule="must carry at least 1 B/s",
            nearest=1,
        )
        for row in _first(topology.resources.capacity < 1)
    ]
    source, destination = _pairs(topology.num_devices)
    there = topology.route(source, destination)
    back = topology.route(destination, source)
    num_rows = len(topology.resources)
    wrong = np.any((there >= num_rows) | (there < -1), axis=1)
    for i in _first(wrong):
        rule = f"must cross resources 0 to {num_rows - 1}"
        faults.append(Fault(key=f"route {source[i]} -> {destination[i]}", value=there[i].tolist(), rule=rule))
    if wrong.any():
        return faults
    for i in _first(np.all(there < 0, axis=1)):
        rule = "must lead over at least one resource: the devices cannot reach each other"
        faults.append(Fault(key=f"route {source[i]} -> {destination[i]}", value=None, rule=rule))
    narrowest, other = _narrowest(topology, there), _narrowest(topology, back)
    faults += [
        Fault(
            key=f"route {source[i]} -> {destination[i]}",
            value=int(narrowest[i]),
            rule="must be as wide as the way back [B/s]",
            nearest=int(other[i]),
        )
        for i in _first((narrowest != other) & (source < destination))
    ]
    return faults


def _first(mask: Any) -> NDArray[np.intp]:
    return np.flatnonzero(mask)[:10]


def _pairs(num_devices: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ordered pairs of different devices."""
    device = np.arange(num_devices, dtype=np.int64)
    if num_devices <= ALL_PAIRS:
        steps = np.arange(1, num_devices, dtype=np.int64)
    else:
        steps = 2 ** np.arange(int(num_devices - 1).bit_length(), dtype=np.int64)
    return np.repeat(device, len(steps)), (device[:, None] + steps).ravel() % max(1, num_devices)


def _narrowest(topology: Topology, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Smallest capacity on each route [B/s]; the largest integer where there is none."""
    unlimited = np.iinfo(np.int64).max
    narrowest: NDArray[np.int64] = np.append(topology.resources.capacity, unlimited)[rows].min(1, initial=unlimited)
    return narrowest
