"""Whether a topology can be simulated: every pair reachable, alike both ways, over links that carry something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.topology.cluster_router import ClusterRouter, MixedRouter
from clustersim.topology.node_paths import NodePaths
from clustersim.topology.topology import Topology

__all__ = ["check", "require_sound"]

ALL_PAIRS = 512
"""Devices up to which every pair is looked at."""

REGULAR_PAIRS = 64
"""The same where routes are in closed form by node."""

_WAYS = re.compile(r"\b(up|down|tx|rx)(?=(\[\{\}\])?$)")
_BACK = {"up": "down", "down": "up", "tx": "rx", "rx": "tx"}


def check(topology: Topology) -> list[Fault]:
    """What is wrong with ``topology``.

    Looks at every resource; and at every pair of up to 512 devices, or 64 where routes are in closed form by node.
    Above that it looks from a device of each node to the next node and to another one drawn at random, and from all
    devices of the first, middle and last node of each size to all devices of the same node and to those 1, 2, 4, 8 …
    further on, which crosses every level of a regular cluster.

    Returns
    -------
    list[Fault]
        resources that carry nothing, latencies below zero, paths over resources that do not exist, pairs without a
        route; then links and pairs whose capacity differs between the two directions; of each kind the first ten
    """
    return [*_impossible(topology), *_uneven(topology)]


def require_sound(topology: Topology) -> Topology:
    """``topology``, with a note for the first links that are not alike both ways, which some mean to be so.

    Raises
    ------
    BadInput
        with all that :func:`check` finds but these
    """
    faults = _impossible(topology)
    if faults:
        raise BadInput(faults)
    notes = tuple(f"{fault.key}: {fault.value} {fault.rule}: {fault.nearest}" for fault in _uneven(topology))
    return replace(topology, notes=topology.notes + notes) if notes else topology


def _impossible(topology: Topology) -> list[Fault]:
    """What no simulation could make sense of."""
    resources = topology.resources
    faults = [
        Fault(key=resources.name(int(row)), value=int(values[row]), rule=rule, nearest=nearest)
        for values, least, rule, nearest in (
            (resources.capacity, 1, "must carry at least 1 B/s", 1),
            (resources.latency_ns, 0, "must have a latency of at least 0 ns", 0),
        )
        for row in _first(values < least)
    ]
    faults += _local_faults(topology)
    source, destination = _pairs(topology)
    there = topology.route(source, destination)
    wrong = np.any((there >= len(resources)) | (there < -1), axis=1)
    for i in _first(wrong):
        rule = f"must cross resources 0 to {len(resources) - 1}"
        faults.append(Fault(key=f"route {source[i]} -> {destination[i]}", value=there[i].tolist(), rule=rule))
    for i in _first(np.all(there == -1, axis=1)):
        rule = "must lead over at least one resource: the devices cannot reach each other"
        faults.append(Fault(key=f"route {source[i]} -> {destination[i]}", value=None, rule=rule))
    return faults


def _local_faults(topology: Topology) -> Iterator[Fault]:
    """Paths of the devices' own traffic that lead nowhere or ask for nothing."""
    num_rows = len(topology.resources)
    local, devices = topology.local, np.arange(topology.num_devices)
    if isinstance(local, NodePaths) and topology.num_devices > ALL_PAIRS:
        devices = _of_some_nodes(topology)
        local = local.of(devices)
    for name, path in local.items():
        for key in ("latency", "per_file"):
            if not 0 <= getattr(path, key) < float("inf"):
                rule = "must be zero or positive, and finite"
                yield Fault(key=f"{name}.{key}", value=getattr(path, key), rule=rule, nearest=0)
        if not path.bandwidth > 0:
            yield Fault(key=f"{name}.bandwidth", value=path.bandwidth, rule="must be positive")
        if not (np.isfinite(path.per_byte) & (path.per_byte > 0)).all():
            yield Fault(key=f"{name}.per_byte", value=path.per_byte.tolist(), rule="must be positive and finite")
        outside = ((path.rows < -1) | (path.rows >= num_rows)).any(axis=1)
        for device in _first(outside | (path.rows == -1).all(axis=1)):
            rule = f"must cross resources 0 to {num_rows - 1}"
            yield Fault(key=f"{name} of device {devices[device]}", value=path.rows[device].tolist(), rule=rule)


def _uneven(topology: Topology) -> list[Fault]:
    """Links, and pairs, that are wider one way than the other."""
    resources = topology.resources
    spans = {
        (b.label, b.start): slice(*resources.first[i : i + 2]) for i, b in enumerate(resources.blocks) if not b.uneven
    }
    faults = []
    for (label, start), span in spans.items():
        way = _WAYS.search(label)
        back = spans.get((label[: way.start()] + _BACK[way[1]] + label[way.end() :], start)) if way else None
        if way is None or way[1] in ("down", "rx") or back is None or back.stop - back.start != span.stop - span.start:
            continue
        one, other = resources.capacity[span], resources.capacity[back]
        faults += [
            Fault(
                key=resources.name(int(span.start + i)),
                value=int(one[i]),
                rule=f"must be as wide as {resources.name(int(back.start + i))} [B/s]",
                nearest=int(other[i]),
            )
            for i in _first(one != other)
        ]
    source, destination = _pairs(topology)
    there, back_there = topology.route(source, destination), topology.route(destination, source)
    if max(there.max(initial=-1), back_there.max(initial=-1)) >= len(resources):
        return faults  # which is said elsewhere
    narrowest, other = _narrowest(topology, there), _narrowest(topology, back_there)
    return faults + [
        Fault(
            key=f"route {source[i]} -> {destination[i]}",
            value=int(narrowest[i]),
            rule="must be as wide as the way back [B/s]",
            nearest=int(other[i]),
        )
        for i in _first((narrowest != other) & (source < destination))
    ]


def _first(mask: Any) -> NDArray[np.intp]:
    return np.flatnonzero(mask)[:10]


def _of_some_nodes(topology: Topology) -> NDArray[np.int64]:
    """Devices of the first, middle and last node of each size."""
    size = np.bincount(topology.node_of)
    start = np.cumsum(size) - size
    some = []
    for kind in np.unique(size):
        alike = np.flatnonzero(size == kind)
        some += [start[one] + np.arange(kind) for one in alike[[0, len(alike) // 2, -1]]]
    return np.concatenate(some)


def _pairs(topology: Topology) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ordered pairs of different devices to look at."""
    n = topology.num_devices
    regular = isinstance(topology.router, ClusterRouter | MixedRouter)
    if n <= (REGULAR_PAIRS if regular else ALL_PAIRS):
        source, destination = np.nonzero(~np.eye(n, dtype=bool))
        return source.astype(np.int64), destination.astype(np.int64)
    size = np.bincount(topology.node_of)
    start = np.cumsum(size) - size
    node = np.arange(len(size))
    there = np.concatenate([np.roll(node, -1), np.random.default_rng(0).integers(0, len(node), len(node))])
    sources = [np.tile(start + node % size, 2)]
    destinations = [start[there] + np.tile(node, 2) % size[there]]
    devices = _of_some_nodes(topology)
    for kind in np.unique(size):
        fans = devices[size[topology.node_of[devices]] == kind]
        near = np.repeat(fans, kind), (start[topology.node_of[fans]][:, None] + np.arange(kind)).reshape(-1)
        steps = 2 ** np.arange(int(n - 1).bit_length(), dtype=np.int64)
        far = np.repeat(fans, len(steps)), ((fans[:, None] + steps) % n).reshape(-1)
        sources += [near[0], far[0]]
        destinations += [near[1], far[1]]
    source, destination = np.concatenate(sources), np.concatenate(destinations)
    apart = source != destination
    pairs = np.concatenate([np.stack([source, destination]), np.stack([destination, source])], axis=1)
    pairs = pairs[:, np.tile(apart, 2)]
    return pairs[0], pairs[1]


def _narrowest(topology: Topology, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Smallest capacity on each route [B/s]; the largest integer where there is none."""
    unlimited = np.iinfo(np.int64).max
    narrowest: NDArray[np.int64] = np.append(topology.resources.capacity, unlimited)[rows].min(1, initial=unlimited)
    return narrowest
