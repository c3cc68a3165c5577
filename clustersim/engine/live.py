"""Which resources can bind at all: the others leave the graph before the run.

A resource whose capacity is at least the sum of the stand-alone rates of all that can cross it at once never slows
anybody; nor does one whose users all load another, tighter one alike (a PCIe lane behind its network port). Ops of one
stream never overlap, so each stream counts with its fastest op only; streams that the program itself keeps apart count
as one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.mix import mix
from clustersim.engine.system import System
from clustersim.workload.op import Collective
from clustersim.workload.program import Arrays

__all__ = ["live_rows", "serial_streams"]


def live_rows(system: System, declared: Iterable[int] = ()) -> NDArray[np.bool_]:
    """Which rows of the resource table take part in sharing.

    Parameters
    ----------
    declared : Iterable[int]
        rows whose capacity may change during the run; they always stay

    Returns
    -------
    NDArray[bool], shape (num_resources,)
    """
    capacity = system.topology.resources.capacity / 1e9  # [B/ns]
    bound = np.zeros(len(capacity))
    lanes = [serial_streams(arrays) for arrays in system.programs]
    width = max((int(lane.max()) + 1 for lane in lanes if len(lane)), default=1)
    # own memory is where a rank's streams and its groups meet, so there the streams can be told apart
    memory = np.zeros(system.num_ranks * width)
    _add_local(system, lanes, width, bound, memory)
    _add_groups(system, lanes, width, bound, memory)
    hbm = system.topology.local.get("hbm")
    if hbm is not None:
        rows = hbm.rows[system.device, 0]
        np.add.at(bound, rows[rows >= 0], memory.reshape(-1, width).sum(axis=1)[rows >= 0])
    live: NDArray[np.bool_] = bound > capacity * (1 + 2**-41)  # half of the head-room of shared resources
    kept = np.fromiter(declared, dtype=np.int64)
    live[kept] = True
    live[_dominated(system, live, kept)] = False
    return live


def _dominated(system: System, live: NDArray[np.bool_], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows that never bind because another row has exactly their users and loads, and at most their capacity.

    Users and loads are compared as sums of 64-bit hashes.
    """
    hashes = np.zeros(len(live), dtype=np.uint64)
    for block in system.blocks:
        used = np.flatnonzero(live[block.cost.row])
        code = (block.first + block.cost.group[used]).astype(np.uint64)
        for s in range(block.cost.load.shape[1]):
            code = mix(code * np.uint64(0x9E3779B97F4A7C15) + block.cost.load[used, s].astype(np.uint64))
        np.add.at(hashes, block.cost.row[used], code)
    for edges in system.path_edges:
        used = np.flatnonzero(live[edges.rows])
        code = mix(edges.ranks[used].astype(np.uint64) + np.uint64(system.num_groups))
        alike = next(k for k, e in enumerate(system.path_edges) if np.array_equal(e.loads, edges.loads))
        salt = mix(np.array([alike], dtype=np.uint64) + np.uint64(1))
        np.add.at(hashes, edges.rows[used], mix(code ^ salt))
    rows = np.flatnonzero(live)
    order = rows[np.lexsort((rows, system.topology.resources.capacity[rows], hashes[rows]))]
    follows = np.zeros(len(order), dtype=bool)
    follows[1:] = hashes[order[1:]] == hashes[order[:-1]]
    return np.setdiff1d(order[follows], kept)


def serial_streams(arrays: Arrays) -> NDArray[np.int64]:
    """For each stream a number; streams with the same number never run at once, by the program's own order.

    Two streams are kept apart when every op of one sits between two neighbouring ops of the other by direct
    dependencies. Only pairs with the first stream of a set are looked at; a pair missed costs speed, not truth.
    """
    number = np.arange(len(arrays.streams), dtype=np.int64)
    position = np.zeros(len(arrays), dtype=np.int64)
    on = [np.flatnonzero(arrays.stream == s) for s in range(len(arrays.streams))]
    for ops in on:
        position[ops] = np.arange(len(ops))
    before, after = arrays.edges[:, 0], arrays.edges[:, 1]
    for t in range(1, len(arrays.streams)):
        for s in range(t):
            if (
                number[s] == s
                and not (number[:t] == s)[np.arange(t) != s].any()
                and _apart(arrays, on, position, before, after, s, t)
            ):
                number[t] = s
                break
    return np.unique(number, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _apart(
    arrays: Arrays,
    on: list[NDArray[np.int64]],
    position: NDArray[np.int64],
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    s: int,
    t: int,
) -> bool:
    low = np.full(len(arrays), -1, dtype=np.int64)
    into = (arrays.stream[before] == s) & (arrays.stream[after] == t)
    np.maximum.at(low, after[into], position[before[into]])
    high = np.full(len(arrays), len(arrays), dtype=np.int64)
    out = (arrays.stream[before] == t) & (arrays.stream[after] == s)
    np.minimum.at(high, before[out], position[after[out]])
    low_of = np.maximum.accumulate(low[on[t]])
    high_of = np.minimum.accumulate(high[on[t]][::-1])[::-1]
    # before the first or after the last op of a step, nothing keeps them from the neighbouring step
    inside = (low_of >= 0) & (high_of < len(on[s]))
    return bool(len(on[t])) and bool((inside & (high_of == low_of + 1)).all())


def _add_local(
    system: System, lanes: list[NDArray[np.int64]], width: int, bound: NDArray[np.float64], memory: NDArray[np.float64]
) -> None:
    for edges in system.path_edges:
        arrays = system.programs[edges.program]
        kinds = system.kind_of[edges.ranks]
        for kind in np.unique(kinds):
            costs = system.local[edges.program, int(kind)]
            ns = np.array([c.ns if c is not None else 1 for c in costs], dtype=np.float64)
            rate = (edges.loads / np.maximum(ns, 1))[arrays.op]
            fastest = np.zeros(width)
            np.maximum.at(fastest, lanes[edges.program][arrays.stream], rate)
            here = kinds == kind
            if edges.path == "hbm":
                for lane in np.flatnonzero(fastest):
                    at = edges.ranks[here] * width + lane
                    memory[at] = np.maximum(memory[at], fastest[lane])
            else:
                np.add.at(bound, edges.rows[here], fastest.sum())


def _add_groups(
    system: System, lanes: list[NDArray[np.int64]], width: int, bound: NDArray[np.float64], memory: NDArray[np.float64]
) -> None:
    lane_of: dict[str, NDArray[np.int64]] = {}
    for p, arrays in enumerate(system.programs):
        stream_of = {
            arrays.ops[k].slot: s
            for k, s in zip(arrays.op, arrays.stream, strict=True)
            if isinstance(arrays.ops[k], Collective)
        }
        for slot, stream in stream_of.items():
            lane_of.setdefault(slot, np.zeros(len(system.programs), dtype=np.int64))[p] = lanes[p][stream]
    kind_of_row, kinds = system.topology.resources.kind, system.topology.resources.kinds
    hbm_kind = kinds.index("hbm") if "hbm" in kinds else -1
    for block in system.blocks:
        cost = block.cost
        ns = np.maximum(cost.ns, 1)
        wire = kind_of_row[cost.row] != hbm_kind
        rate = (cost.load[wire] / ns[cost.group[wire]]).max(axis=1)
        np.add.at(bound, cost.row[wire], rate)
        own = np.max([what.memory_nbytes[None, :] / ns[:, s : s + 1] for s, what in enumerate(block.traffic)], axis=0)
        lane = np.stack(
            [
                lane_of[slot][system.program_of[block.members[:, i]]]
                if slot in lane_of
                else np.zeros(len(block.members), dtype=np.int64)
                for i, slot in enumerate(block.slots)
            ],
            axis=1,
        )
        np.maximum.at(memory, (block.members * width + lane).reshape(-1), own.reshape(-1))
