"""What released each op: it follows from the programs and the instants, and of pools from who gave back to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.engine import Engine
from clustersim.engine.loop.lane import Lane
from clustersim.engine.loop.rendezvous import Rendezvous

__all__ = ["join", "pass_by", "readiness", "waits"]


def readiness(lane: Lane, end: NDArray[np.int64], launched: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When each op's predecessors had all ended, and the one that ended last (of several, the first in the program)."""
    n = len(end)
    ready = np.full(n, launched, dtype=np.int64)
    cause = np.full(n, -1, dtype=np.int64)
    edges = lane.flat.edges
    if len(edges):
        first = np.flatnonzero(np.concatenate([[True], edges[1:, 1] != edges[:-1, 1]]))
        after = edges[first, 1]
        times = np.where(end[edges[:, 0]] < 0, np.iinfo(np.int64).max, end[edges[:, 0]])
        last = np.maximum.reduceat(times, first)
        is_last = times == np.repeat(last, np.diff(np.append(first, len(edges))))
        cause[after] = np.minimum.reduceat(np.where(is_last, edges[:, 0], n), first)
        open_ended = last == np.iinfo(np.int64).max
        ready[after] = np.where(open_ended, -1, last)
        cause[after[open_ended]] = -1
    return ready, cause


def waits(
    engine: Engine,
    number: dict[Lane, int],
    ready: Sequence[NDArray[np.int64]],
    cause_lane: list[NDArray[np.int32]],
    cause_op: list[NDArray[np.int32]],
    starts: list[NDArray[np.int64]],
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """What waited for a pool is caused, in place, by the op that gave back to it.

    Returns
    -------
    arrived : list of NDArray[int64]
        by lane and op, when it was ready and had what it takes [ns]
    pooled : list of NDArray[int64], shape (w, 2)
        by lane, (op, pool) of those that started when the pool let them; a collective may have waited for members then
    """
    arrived = list(ready)
    found: list[list[tuple[int, int]]] = [[] for _ in engine.lanes]
    for (lane, op), wait in engine.stores.waited.items():
        k = number[lane]
        if arrived[k] is ready[k]:
            arrived[k] = ready[k].copy()
        arrived[k][op] = wait.until
        giver, cause_op[k][op] = wait.giver
        cause_lane[k][op] = number[giver]
        if starts[k][op] == wait.until:
            pool = next(name for name, (store, _) in lane.stores.items() if store == wait.store)
            found[k].append((op, lane.flat.arrays.pools.index(pool)))
    return arrived, [np.array(sorted(mine), dtype=np.int64).reshape(-1, 2) for mine in found]


def join(
    meeting: Rendezvous,
    number: dict[Lane, int],
    arrived: Sequence[NDArray[np.int64]],
    cause_lane: list[NDArray[np.int32]],
    cause_op: list[NDArray[np.int32]],
    starts: list[NDArray[np.int64]],
) -> None:
    """A collective starts with its last member, so what released that member is the cause for all."""
    rounds = min(len(ops) for _, ops in meeting.members)
    if not rounds:
        return
    lanes = [number[lane] for lane, _ in meeting.members]
    ops = [np.array(ops[:rounds], dtype=np.int64) for _, ops in meeting.members]
    arrival = np.stack(
        [np.where(arrived[k][i] < 0, np.iinfo(np.int64).max, arrived[k][i]) for k, i in zip(lanes, ops, strict=True)]
    )
    last = np.argmax(arrival, axis=0)
    column = np.arange(rounds)
    released_by = np.stack([cause_op[k][i] for k, i in zip(lanes, ops, strict=True)])[last, column]
    in_lane = np.stack([cause_lane[k][i] for k, i in zip(lanes, ops, strict=True)])[last, column]
    for k, i in zip(lanes, ops, strict=True):
        started = starts[k][i] >= 0
        cause_lane[k][i[started]] = in_lane[started]
        cause_op[k][i[started]] = released_by[started]


def pass_by(
    left_out: Sequence[NDArray[np.bool_]], cause_lane: list[NDArray[np.int32]], cause_op: list[NDArray[np.int32]]
) -> None:
    """Name the cause of what caused an op where this is left out, in place, until it is not."""
    first = np.concatenate([[0], np.cumsum([len(out) for out in left_out])])
    out = np.concatenate(left_out)
    lane, op = np.concatenate(cause_lane), np.concatenate(cause_op)
    cause = np.where(op < 0, -1, first[lane] + op)
    while (at := np.flatnonzero(~out & (cause >= 0) & out[cause])).size:
        cause[at] = cause[cause[at]]
    found = np.where(cause < 0, -1, np.searchsorted(first, cause, side="right") - 1)
    for k, (a, b) in enumerate(pairwise(first.tolist())):
        cause_lane[k][:] = found[a:b]
        cause_op[k][:] = np.where(cause[a:b] < 0, -1, cause[a:b] - first[found[a:b]])
