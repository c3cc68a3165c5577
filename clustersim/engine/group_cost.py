"""What the collectives of many equal groups take alone, and what they put on which resource."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.traffic import Phase, Traffic
from clustersim.topology.topology import Topology

__all__ = ["GroupCost", "group_cost"]


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
    when they are not. It runs at that even speed; the launch of its kernel is part of the latency.
    """
    n = len(devices)
    num_rows = len(topology.resources)
    capacity = topology.resources.capacity.astype(np.float64)
    hbm = topology.local.get("hbm")
    memory_row = hbm.rows[devices, 0] if hbm is not None else np.full(devices.shape, -1, dtype=np.int64)
    launch_ns = np.max(
        np.array([round(g.launch_latency * 1e9) for g in topology.gpus])[topology.gpu_of[devices]], axis=1
    )
    routes: dict[tuple[bytes, bytes], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    keys, weights, owners = [], [], []
    latency = np.zeros((n, len(traffic)), dtype=np.int64)
    serial = np.zeros((n, len(traffic)))
    for s, what in enumerate(traffic):
        for phase in what.phases:
            hops, route_ns = _route(topology, devices, phase, routes)
            latency[:, s] += phase.num_steps * route_ns
            key, nbytes = _flow_edges(hops, phase.nbytes, num_rows)
            keys.append(key)
            weights.append(nbytes)
            owners.append(np.full(len(key), s, dtype=np.int64))
            if not what.pipelined:
                group, row, load = _sum_by_key(key, nbytes, num_rows)
                serial[:, s] += _max_by_group(group, load / capacity[row], n)
        latency[:, s] += launch_ns
        used = (memory_row >= 0) & (what.memory_nbytes > 0)
        key = (np.arange(n)[:, None] * num_rows + memory_row)[used]
        keys.append(key)
        weights.append(np.broadcast_to(what.memory_nbytes, used.shape)[used])
        owners.append(np.full(len(key), s, dtype=np.int64))
    edge_key, inverse = np.unique(np.concatenate(keys), return_inverse=True) if keys else (np.empty(0, np.int64),) * 2
    size = len(edge_key) * len(traffic)
    flat = inverse.reshape(-1) * len(traffic) + np.concatenate(owners)
    # exact: whole bytes far below 2^53
    load = (
        np.bincount(flat, weights=np.concatenate(weights), minlength=size)
        .astype(np.int64)
        .reshape(len(edge_key), len(traffic))
    )
    group, row = edge_key // num_rows, edge_key % num_rows
    ns = np.zeros((n, len(traffic)), dtype=np.int64)
    peak = np.zeros((n, len(traffic)), dtype=np.int64)
    for s, what in enumerate(traffic):
        busiest = _max_by_group(group, load[:, s] / capacity[row], n)
        seconds = busiest if what.pipelined else np.maximum(serial[:, s], busiest)
        # less what floats round up, far inside the 2^-40 of head-room that shared resources keep
        ns[:, s] = latency[:, s] + np.ceil(seconds * 1e9 * (1 - 2**-46)).astype(np.int64)
        peak[:, s] = _max_by_group(group, load[:, s], n)
    return GroupCost(ns=ns, latency_ns=latency, group=group, row=row, load=load, peak_load=peak, memory_row=memory_row)


def _route(
    topology: Topology,
    devices: NDArray[np.int64],
    phase: Phase,
    routes: dict[tuple[bytes, bytes], tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n, flows, hops) rows and (n,) longest latency [ns] of a phase; signatures share most of their flows."""
    key = (phase.source.tobytes(), phase.destination.tobytes())
    if key not in routes:
        source, destination = devices[:, phase.source], devices[:, phase.destination]
        hops = topology.route(source.reshape(-1), destination.reshape(-1))
        latency_ns = np.append(topology.resources.latency_ns, 0)[hops].sum(axis=1).reshape(source.shape)
        longest = latency_ns.max(axis=1) if source.shape[1] else np.zeros(len(devices), dtype=np.int64)
        routes[key] = hops.reshape(*source.shape, -1), longest
    return routes[key]


def _flow_edges(
    hops: NDArray[np.int64], nbytes: NDArray[np.int64], num_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One (group · num_rows + row, bytes) per hop of every flow that carries something."""
    used = (hops >= 0) & (nbytes > 0)[None, :, None]
    keys = (np.arange(len(hops), dtype=np.int64)[:, None, None] * num_rows + hops)[used]
    return keys, np.broadcast_to(nbytes[None, :, None], hops.shape)[used]


def _sum_by_key(
    key: NDArray[np.int64], nbytes: NDArray[np.int64], num_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    unique, inverse = np.unique(key, return_inverse=True)
    load = np.bincount(inverse.reshape(-1), weights=nbytes, minlength=len(unique)).astype(np.int64)
    return unique // num_rows, unique % num_rows, load


def _max_by_group(group: NDArray[np.int64], value: NDArray[np.generic], n: int) -> NDArray[np.float64]:
    """Largest value of each group, 0 for a group without any; ``group`` is sorted."""
    result = np.zeros(n, dtype=value.dtype)
    if len(group):
        first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        result[group[first]] = np.maximum.reduceat(value, first)
    return result
