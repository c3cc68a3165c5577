"""Which resources can bind at all: the others leave the graph before the run.

A resource whose capacity is at least the sum of the stand-alone rates of all that can cross it at once never slows
anybody; nor does one whose users all load another, tighter one alike (a PCIe lane behind its network port), nor one
that narrower ones cannot fill together (an uplink above ports, ``implied.py``). Ops of one stream never overlap, so
each stream counts with its fastest op only; on a rank's own memory, where all its streams meet, only ops count together
that the program lets run together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.implied import find_implied
from clustersim.engine.mix import mix
from clustersim.engine.system import System
from clustersim.workload.op import Collective

__all__ = ["Live", "find_live"]

HEAD_ROOM = 1 + 2**-41
"""Half of the head-room of shared resources: what is within it is never over."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Live:
    """What takes part in sharing.

    Attributes
    ----------
    rows : NDArray[bool], shape (num_resources,)
        resources that can bind
    crowded : Mapping[tuple[int, int], NDArray[bool]]
        (program, kind) -> by op, whether its rank's memory may be asked for more than it has while the op runs; the
        others need not be watched for what they ask of it
    """

    rows: NDArray[np.bool_]
    crowded: Mapping[tuple[int, int], NDArray[np.bool_]]


def find_live(system: System, rounds: Sequence[int], declared: Iterable[int] = ()) -> Live:
    """Find what can bind.

    Parameters
    ----------
    rounds : Sequence[int]
        times that each job plays its programs
    declared : Iterable[int]
        rows whose capacity may change during the run; they always stay
    """
    kept = np.fromiter(declared, dtype=np.int64)
    capacity = system.topology.resources.capacity / 1e9  # [B/ns]
    bound = np.zeros(len(capacity))
    crowded = _own_memory(system, rounds, bound, kept)
    _add_paths(system, bound)
    _add_links(system, bound)
    if system.noise is not None:  # kernels may be faster than their cards say, so everything that is used may bind
        crowded, rows = {}, bound > 0
    else:
        rows = bound > capacity * HEAD_ROOM
    rows[find_implied(system, rows, kept)] = False
    rows[kept] = True
    rows[_dominated(system, rows, kept)] = False
    return Live(rows=rows, crowded=crowded)


def _dominated(system: System, live: NDArray[np.bool_], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows that never bind because another row has exactly their users and loads, and at most their capacity.

    Users and loads are compared as sums of 64-bit hashes.
    """
    odd = np.uint64(0x9E3779B97F4A7C15)
    hashes = np.zeros(len(live), dtype=np.uint64)
    for block in system.blocks:
        used, load = np.flatnonzero(live[block.cost.row]), block.cost.by_phase.load
        code = (1 + block.first + block.cost.group[used]).astype(np.uint64)
        for p in range(load.shape[1]):
            code = mix(code * odd + load[used, p].astype(np.uint64))
        np.add.at(hashes, block.cost.row[used], code)
    for edges in system.path_edges:
        used = np.flatnonzero(live[edges.rows])
        code = mix((1 + system.num_groups + edges.ranks[used]).astype(np.uint64))
        alike = next(k for k, e in enumerate(system.path_edges) if np.array_equal(e.loads, edges.loads))
        np.add.at(hashes, edges.rows[used], mix(code * odd + np.uint64(alike)))
    rows = np.setdiff1d(np.flatnonzero(live), kept)  # a capacity that may change shields no other
    order = rows[np.lexsort((rows, system.topology.resources.capacity[rows], hashes[rows]))]
    follows = np.zeros(len(order), dtype=bool)
    follows[1:] = hashes[order[1:]] == hashes[order[:-1]]
    return order[follows]


def _own_memory(
    system: System, rounds: Sequence[int], bound: NDArray[np.float64], kept: NDArray[np.int64]
) -> dict[tuple[int, int], NDArray[np.bool_]]:
    """Add the most that the ops of each rank can ask of its memory at once; say by op where that is too much."""
    hbm = system.topology.local.get("hbm")
    if hbm is None:
        return {}
    rows = hbm.rows[system.device, 0]
    num_users = np.bincount(rows[rows >= 0], minlength=len(bound))
    joint = _joint_rates(system)
    rounds_of = np.repeat(np.array(rounds), np.diff(system.first_rank))
    loads_of = {edges.program: edges.loads for edges in system.path_edges if edges.path == "hbm"}
    crowded = {}
    for p, arrays in enumerate(system.programs):
        ranks = np.flatnonzero(system.program_of == p)
        if not len(ranks):
            continue
        # a round meets its neighbours at most: two rounds show all that can overlap
        role = system.role(p, min(2, int(rounds_of[ranks].max())))
        beside = role.beside
        loads = loads_of.get(p, np.zeros(len(arrays.ops)))
        shared = np.array(
            [
                joint[p].get((op.slot, op.nbytes, _kind(op)), 0.0) if isinstance(op, Collective) else 0.0
                for op in arrays.ops
            ]
        )
        for kind in np.unique(system.kind_of[ranks]).tolist():
            ns = np.array([max(1, c.ns) if c is not None else 1 for c in system.local[p, kind]], dtype=np.float64)
            rate = (loads / ns + shared)[role.op]
            total = beside.most(rate)
            total[1::2] += rate[beside.pivot]
            mine = rows[ranks[system.kind_of[ranks] == kind]]
            mine = mine[mine >= 0]
            np.add.at(bound, mine, total.max(initial=0.0))
            is_crowded = np.ones(len(arrays), dtype=bool)
            if len(mine) and (num_users[mine] == 1).all() and not np.isin(mine, kept).any():
                # one device kind, so one capacity
                over = total > system.topology.resources.capacity[mine[0]] / 1e9 * HEAD_ROOM
                is_crowded = np.asarray(beside.meets(over).reshape(role.rounds, -1).any(axis=0))
            crowded[p, kind] = is_crowded
    return crowded


def _kind(op: Collective) -> str:
    return "send_recv" if op.kind in ("send", "recv") else op.kind


def _joint_rates(system: System) -> list[dict[tuple[str, int, str], float]]:
    """By program: (slot, bytes, kind) of a collective -> most that it asks of one member's memory [B/ns]."""
    rates: list[dict[tuple[str, int, str], float]] = [{} for _ in system.programs]
    for block in system.blocks:
        slots, by_phase = np.array(block.slots), block.cost.by_phase
        for slot in dict.fromkeys(block.slots):
            at = np.flatnonzero(slots == slot)
            programs = system.program_of[block.members[:, at]]
            for s, (kind, nbytes, _) in enumerate(block.signatures):
                most, mine = np.zeros(len(system.programs)), by_phase.phases.of_signature(s)
                rate = by_phase.memory_nbytes[at, mine] / np.maximum(1, by_phase.ns[:, None, mine])
                np.maximum.at(most, programs, rate.max(axis=2))
                for p in np.flatnonzero(most).tolist():
                    key = slot, nbytes, kind
                    rates[p][key] = max(rates[p].get(key, 0.0), float(most[p]))
    return rates


def _add_paths(system: System, bound: NDArray[np.float64]) -> None:
    """What ranks ask of everything but their own memory, stream by stream."""
    for edges in system.path_edges:
        if edges.path == "hbm":
            continue
        arrays = system.programs[edges.program]
        kinds = system.kind_of[edges.ranks]
        for kind in np.unique(kinds):
            costs = system.local[edges.program, int(kind)]
            ns = np.array([max(1, c.ns) if c is not None else 1 for c in costs], dtype=np.float64)
            fastest = np.zeros(len(arrays.streams))
            np.maximum.at(fastest, arrays.stream, (edges.loads / ns)[arrays.op])
            np.add.at(bound, edges.rows[kinds == kind], fastest.sum())


def _add_links(system: System, bound: NDArray[np.float64]) -> None:
    """What groups ask of everything but their members' memories."""
    kind_of_row, kinds = system.topology.resources.kind, system.topology.resources.kinds
    hbm_kind = kinds.index("hbm") if "hbm" in kinds else -1
    for block in system.blocks:
        cost = block.cost
        wire = kind_of_row[cost.row] != hbm_kind
        # one phase of one collective at a time
        rate = (cost.by_phase.load[wire] / np.maximum(cost.by_phase.ns, 1)[cost.group[wire]]).max(axis=1)
        np.add.at(bound, cost.row[wire], rate)
