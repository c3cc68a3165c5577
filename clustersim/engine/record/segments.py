"""Stretches of time in which an op used its resources evenly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.engine import Engine
from clustersim.engine.loop.history import Change
from clustersim.engine.loop.lane import Lane
from clustersim.engine.loop.rendezvous import Rendezvous
from clustersim.engine.scene.signature import ONE

__all__ = ["Segments", "segments"]

Segments = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""(begin [ns], end [ns], fraction of the op's load)"""


def segments(engine: Engine, participant: int) -> tuple[NDArray[np.int64], Segments]:
    """What was evenly used when, by all ops of a lane, or all collectives of a rendezvous, that have ended.

    Returns
    -------
    NDArray[int64], shape (num_stretches,)
        which column of the loads: distinct op of the program, or phase of the block
    Segments
    """
    if participant < len(engine.lanes):
        lane = engine.lanes[participant]
        owner: Lane | Rendezvous = lane
        start, end = np.array(lane.start, dtype=np.float64), np.array(lane.end, dtype=np.float64)
        signature = np.array(lane.op, dtype=np.int64)
    else:
        meeting = engine.rendezvous[participant - len(engine.lanes)]
        owner = meeting
        member, ops = meeting.members[0]
        at = np.array(ops, dtype=np.int64)
        start, end = np.array(member.start, dtype=np.float64)[at], np.array(member.end, dtype=np.float64)[at]
        signature = np.array(meeting.script[: len(at)], dtype=np.int64)
    ended = (start >= 0) & (end >= start) & (end <= engine.env.now)
    numbers = np.flatnonzero(ended)
    changed = np.array([(owner, k, 0) in engine.history.changes for k in numbers.tolist()], dtype=bool)
    if isinstance(owner, Rendezvous):
        changed |= np.array([bool(owner.signatures[s].phases) for s in owner.script], dtype=bool)[numbers]
        signature = engine.scene.system.blocks[owner.spec.block].cost.by_phase.phases.first[signature]
    even, uneven = numbers[~changed], numbers[changed]
    logs, ends, columns = list[Sequence[Change]](), list[int](), list[int]()
    for k in uneven.tolist():
        for phase, (a, b) in enumerate(_phases(engine, owner, k, int(start[k]), int(end[k]))):
            logs.append(engine.history.changes.get((owner, k, phase), [(a, 0, -1)]))
            ends.append(b)
            columns.append(int(signature[k]) + phase)
    begin, finish, done = _stretches(logs, ends)
    lengths = np.array([len(log) for log in logs], dtype=np.int64)
    return np.concatenate([signature[even], np.repeat(np.array(columns, dtype=np.int64), lengths)]), (
        np.concatenate([start[even], begin]),
        np.concatenate([end[even], finish]),
        np.concatenate([np.ones(len(even)), done]),
    )


def _phases(engine: Engine, owner: Lane | Rendezvous, k: int, start: int, end: int) -> list[tuple[int, int]]:
    """When each phase of an op began and ended, as far as it came; most ops are one."""
    phases = owner.signatures[owner.script[k]].phases if isinstance(owner, Rendezvous) else ()
    turns = engine.history.turns.get((owner, k))
    if turns is None:  # it was alone
        turns = list(accumulate((phase.ns for phase in phases[:-1]), initial=start))[1:] if phases else []
    return list(pairwise([start, *turns, end]))


def _stretches(logs: Sequence[Sequence[Change]], ends: Sequence[int]) -> Segments:
    """Evenly used stretches of ops whose rate changed, one op after the other."""
    begin: list[int] = []
    finish: list[int] = []
    done: list[float] = []
    for log, end in zip(logs, ends, strict=True):
        begins = [when for when, _, _ in log]
        finishes = [*begins[1:], end]
        parts = [rate * (b - a) / ONE for (a, rate, _), b in zip(log, finishes, strict=True)]
        parts[-1] = 1.0 - sum(parts[:-1])  # the last nanosecond may be part empty
        begin += begins
        finish += finishes
        done += parts
    return np.array(begin, dtype=np.float64), np.array(finish, dtype=np.float64), np.array(done, dtype=np.float64)
