"""How much a rank's ops together may ask of its own memory, and which of them meet where that is too much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.system.system import System
from clustersim.workload.op import Collective

__all__ = ["HEAD_ROOM", "find_crowded"]

HEAD_ROOM = 1 + 2**-41
"""Half of the head-room of shared resources: what is within it is never over."""


def find_crowded(
    system: System, rounds: Sequence[int], bound: NDArray[np.float64], kept: NDArray[np.int64]
) -> dict[tuple[int, int], NDArray[np.bool_]]:
    """Add the most that the ops of each rank can ask of its memory at once; say by op where that is too much.

    Parameters
    ----------
    rounds : Sequence[int]
        times that each job plays its programs
    bound : NDArray[float64], shape (num_resources,)
        what may be asked of each; it is added there [B/ns]
    kept : NDArray[int64]
        rows whose capacity may change

    Returns
    -------
    dict[tuple[int, int], NDArray[bool]]
        see :attr:`~clustersim.engine.scene.live.Live.crowded`
    """
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
