"""What the collectives of many equal groups take alone, and what they put on which resource."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.traffic import Phase, Traffic
from clustersim.hardware.protocol import Protocol
from clustersim.topology.in_network import InNetwork
from clustersim.topology.topology import Topology

__all__ = ["GroupCost", "group_cost"]

_Key = tuple[bytes, bytes, bytes]


@dataclass(kw_only=True, slots=True, eq=False)
class GroupCost:
    """n groups of m members, S signatures, E edges.

    Attributes
    ----------
    ns : NDArray[int64], shape (n, S)
        duration alone on the links [ns]
    latency_ns : NDArray[int64], shape (n, S)
        the part of it that no bandwidth would shorten [ns]
    group, row : NDArray[int64], shape (E,)
        the edges: position of the group in the block, resource
    load : NDArray[int64], shape (E, S)
        bytes that one collective of each signature puts on the resource [B]
    peak_load : NDArray[int64], shape (n, S)
        on the group's busiest resource [B]
    memory_row : NDArray[int64], shape (n, m)
        HBM resource of each member, -1 where the topology has none
    """

    ns: NDArray[np.int64]
    latency_ns: NDArray[np.int64]
    group: NDArray[np.int64]
    row: NDArray[np.int64]
    load: NDArray[np.int64]
    peak_load: NDArray[np.int64]
    memory_row: NDArray[np.int64]


def group_cost(topology: Topology, devices: NDArray[np.int64], traffic: tuple[Traffic, ...]) -> GroupCost:
    """Durations and demands.

    Parameters
    ----------
    devices : NDArray[int64], shape (n, m)
        of the members of each group
    traffic : tuple[Traffic, ...]
        one a signature

    Notes
    -----
    Alone, a collective takes Σ over phases of num_steps · (longest route latency) for latency, plus for bandwidth
    max over resources of load / capacity, taken over all phases together when they are pipelined and phase by phase
    when they are not. It runs at that even speed; the launch of its kernel is part of the latency. Where the
    topology's communication library has protocols for the algorithm, each adds its own latency to launch and steps and
    takes its share of the bandwidth, and the fastest is taken: of two that tie, the first.
    """
    n = len(devices)
    capacity = topology.resources.capacity.astype(np.float64)
    hbm = topology.local.get("hbm")
    memory_row = hbm.rows[devices, 0] if hbm is not None else np.full(devices.shape, -1, dtype=np.int64)
    launch_ns = np.max(
        np.array([round(g.launch_latency * 1e9) for g in topology.gpus])[topology.gpu_of[devices]], axis=1
    )
    routes: dict[_Key, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    crossed: dict[_Key, NDArray[np.int64]] = {}  # by route: bytes on each hop by signature
    steps_ns = np.zeros((n, len(traffic)), dtype=np.int64)
    serial = np.zeros((n, len(traffic)))
    for s, what in enumerate(traffic):
        for phase in what.phases:
            key = _key(phase)
            hops, route_ns = _route(topology, devices, phase, routes)
            steps_ns[:, s] += phase.num_steps * route_ns
            on_hops = np.repeat(phase.nbytes, hops.shape[1] // max(1, len(phase.nbytes)))
            crossed.setdefault(key, np.zeros((hops.shape[1], len(traffic)), dtype=np.int64))[:, s] += on_hops
            if not what.pipelined:
                group, row, load = _edges(hops, on_hops[:, None])
                serial[:, s] += _max_by_group(group, load[:, 0] / capacity[row], n)
    in_memory = np.stack([what.memory_nbytes for what in traffic], axis=1)
    group, row, load = _edges(
        np.concatenate([*(routes[key][0] for key in crossed), memory_row], axis=1),
        np.concatenate([*crossed.values(), in_memory]),
    )
    ns = np.zeros((n, len(traffic)), dtype=np.int64)
    latency = np.zeros((n, len(traffic)), dtype=np.int64)
    peak = np.zeros((n, len(traffic)), dtype=np.int64)
    for s, what in enumerate(traffic):
        busiest = _max_by_group(group, load[:, s] / capacity[row], n)
        seconds = busiest if what.pipelined else np.maximum(serial[:, s], busiest)
        ways = topology.protocols.get(what.algorithm, ()) if what.phases else ()
        steps = _steps(topology, devices, what)
        ns[:, s], latency[:, s] = _fastest(ways, launch_ns, steps_ns[:, s], steps, seconds)
        peak[:, s] = _max_by_group(group, load[:, s], n)
    return GroupCost(ns=ns, latency_ns=latency, group=group, row=row, load=load, peak_load=peak, memory_row=memory_row)


def _steps(topology: Topology, devices: NDArray[np.int64], what: Traffic) -> tuple[int, int]:
    """Serial steps inside nodes and between them; a phase that leaves a node anywhere counts as between."""
    node = topology.node_of[devices[0]]  # equal groups sit alike
    inside = between = 0
    for phase in what.phases:
        if (node[phase.source] != node[phase.destination]).any():
            between += phase.num_steps
        else:
            inside += phase.num_steps
    return inside, between


def _fastest(
    ways: Sequence[Protocol],
    launch_ns: NDArray[np.int64],
    route_ns: NDArray[np.int64],
    steps: tuple[int, int],
    seconds: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Duration of the fastest protocol and the latency in it, shape (n,) both; without protocols the plain sum."""
    inside, between = steps
    latency = np.stack(
        [
            route_ns
            + np.maximum(launch_ns, round(way.launch_latency * 1e9))
            + round(1e9 * (inside * way.inside_latency + between * way.between_latency))
            for way in ways
        ]
        or [route_ns + launch_ns]
    )
    fraction = np.array([way.bandwidth_fraction for way in ways] or [1.0])
    # less what floats round up, far inside the 2^-40 of head-room that shared resources keep
    ns = latency + np.ceil(seconds / fraction[:, None] * 1e9 * (1 - 2**-46)).astype(np.int64)
    best = np.argmin(ns, axis=0)[None]
    return np.take_along_axis(ns, best, axis=0)[0], np.take_along_axis(latency, best, axis=0)[0]


def _route(
    topology: Topology,
    devices: NDArray[np.int64],
    phase: Phase,
    routes: dict[_Key, tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n, flows · hops) rows and (n,) longest latency [ns] of a phase; signatures share most of their flows."""
    key = _key(phase)
    if key not in routes:
        source, destination = devices[:, phase.source], devices[:, phase.destination]
        hops = topology.route(source.reshape(-1), destination.reshape(-1))
        if phase.tree is not None and topology.in_network is not None:
            hops = _through_engines(hops, topology.in_network, source, destination, _added(phase, phase.tree))
        latency_ns = np.append(topology.resources.latency_ns, 0)[hops].sum(axis=1).reshape(source.shape)
        longest = latency_ns.max(axis=1) if source.shape[1] else np.zeros(len(devices), dtype=np.int64)
        hops = hops.reshape(len(devices), -1)
        routes[key] = hops if phase.tree is None else _once(hops, phase.tree), longest
    return routes[key]


def _added(phase: Phase, tree: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Flows that are added up on their way: those of streams that come from several members."""
    _, stream = np.unique(tree, return_inverse=True)
    pairs = np.unique(np.stack([stream.reshape(-1), phase.source], axis=1), axis=0)
    sums: NDArray[np.bool_] = (np.bincount(pairs[:, 0]) > 1)[stream.reshape(-1)]
    return sums


def _through_engines(
    hops: NDArray[np.int64],
    in_network: InNetwork,
    source: NDArray[np.int64],
    destination: NDArray[np.int64],
    added: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Routes on which what is added up also crosses the switches' reduction engines; a copy needs none."""
    flows = np.broadcast_to(added, source.shape).reshape(-1)
    summed = in_network.router(source.reshape(-1)[flows], destination.reshape(-1)[flows])
    rows = np.full((len(hops), max(hops.shape[1], summed.shape[1])), -1, dtype=np.int64)
    rows[:, : hops.shape[1]] = hops
    rows[flows] = -1
    rows[flows, : summed.shape[1]] = summed
    return rows


def _key(phase: Phase) -> _Key:
    return phase.source.tobytes(), phase.destination.tobytes(), b"" if phase.tree is None else phase.tree.tobytes()


def _once(hops: NDArray[np.int64], tree: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hops of flows that switches add up or copy: each resource stands there once a tree, -1 for the other times."""
    stream = hops + (hops.max(initial=0) + 2) * np.repeat(tree, hops.shape[1] // max(1, len(tree)))
    order = np.argsort(stream, axis=1, kind="stable")
    ordered = np.take_along_axis(stream, order, axis=1)
    again = np.zeros(hops.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(again, -1, hops)


def _edges(
    rows: NDArray[np.int64], nbytes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sum what each group puts on each row.

    Parameters
    ----------
    rows : NDArray[int64], shape (n, k)
        rows that each group crosses, -1 for none; the same row may stand there several times
    nbytes : NDArray[int64], shape (k, S)
        what it puts on each by signature, alike for all groups

    Returns
    -------
    group, row : NDArray[int64], shape (E,)
        sorted by both
    load : NDArray[int64], shape (E, S)
    """
    used = nbytes.any(axis=1)
    rows, nbytes = rows[:, used], nbytes[used]
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    starts = ordered >= 0
    starts[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    valid = (ordered >= 0).reshape(-1)
    load = nbytes[order.reshape(-1)[valid]]
    first = np.flatnonzero(starts.reshape(-1)[valid])
    group, _ = np.nonzero(starts)
    return group, ordered[starts], np.add.reduceat(load, first, axis=0) if len(first) else load


def _max_by_group(group: NDArray[np.int64], value: NDArray[np.generic], n: int) -> NDArray[np.float64]:
    """Largest value of each group, 0 for a group without any; ``group`` is sorted."""
    result = np.zeros(n, dtype=value.dtype)
    if len(group):
        first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        result[group[first]] = np.maximum.reduceat(value, first)
    return result
