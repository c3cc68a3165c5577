"""From the loop's start and end times to the record: readiness, causes and bounds follow from the programs alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.engine import Engine
from clustersim.engine.loop.lane import Lane
from clustersim.engine.loop.rendezvous import Rendezvous
from clustersim.engine.record.causes import join, pass_by, readiness, waits
from clustersim.engine.record.timed import fractions, timed_work
from clustersim.trace.record import LaneRecord, Record
from clustersim.workload.job import Pool

__all__ = ["record"]


def record(engine: Engine, steps: int, status: str = "ok", message: str = "") -> Record:
    """What the run leaves behind.

    Parameters
    ----------
    steps : int
        optimizer steps that were asked for; what was played behind them, to the end of a round, is left out
    status : str
        ``ok``, ``deadlock``, ``limit`` or ``interrupted``
    message : str
        why it did not end well
    """
    scene = engine.scene
    now = int(engine.env.now)
    number = {lane: k for k, lane in enumerate(engine.lanes)}
    bounds: dict[str, int] = {"": 0}
    starts = [np.array(lane.start, dtype=np.int64) for lane in engine.lanes]
    ends = [np.array(lane.end, dtype=np.int64) for lane in engine.lanes]
    for end in ends:
        end[end > now] = -1  # still running when the run was stopped
    ready, cause = (
        zip(
            *[
                readiness(lane, end, engine.launched.get(lane.spec.job, -1))
                for lane, end in zip(engine.lanes, ends, strict=True)
            ],
            strict=True,
        )
        if engine.lanes
        else ((), ())
    )
    cause_lane = [np.where(c >= 0, k, -1).astype(np.int32) for k, c in enumerate(cause)]
    cause_op = [c.astype(np.int32) for c in cause]
    arrived, pooled = waits(engine, number, ready, cause_lane, cause_op, starts)
    bound = [_own_bounds(lane, bounds) for lane in engine.lanes]
    for meeting in engine.rendezvous:
        join(meeting, number, arrived, cause_lane, cause_op, starts)
        _joint_bounds(meeting, number, bound, bounds)
    _limits(engine, number, bound, bounds)
    timed = timed_work(scene, engine.lanes)
    left_out = [_behind(lane, steps) for lane in engine.lanes]
    if any(map(np.any, left_out)):
        pass_by(left_out, cause_lane, cause_op)
        for out, *columns in zip(left_out, starts, ends, ready, cause_lane, cause_op, strict=True):
            for column in columns:
                column[out] = -1
        pooled = [table[~out[table[:, 0]]] for table, out in zip(pooled, left_out, strict=True)]
    lanes = tuple(
        LaneRecord(
            job=lane.spec.job,
            rank=lane.spec.rank - int(scene.system.first_rank[lane.spec.job]),
            multiplicity=lane.spec.multiplicity,
            arrays=lane.flat.arrays,
            steps=steps,
            start_ns=starts[k],
            end_ns=ends[k],
            ready_ns=ready[k],
            cause_lane=cause_lane[k],
            cause_op=cause_op[k],
            bound=bound[k],
            resident=_resident(lane, scene.system.jobs[lane.spec.job].pools),
            pooled=pooled[k],
            groups={slot: scene.rendezvous[r].name for slot, r in lane.spec.rendezvous.items()},
        )
        for k, lane in enumerate(engine.lanes)
    )
    return Record(
        jobs=scene.system.jobs,
        lanes=lanes,
        lane_of=tuple(scene.lane_of),
        bounds=tuple(bounds),
        coverage=fractions(timed),
        timed=timed,
        num_events=engine.num_events,
        status=status,
        message=message,
    )


def _resident(lane: Lane, pools: Mapping[str, Pool]) -> dict[str, int]:
    """Bytes that a rank holds from beginning to end, its own pools among them [B]."""
    held = dict(lane.flat.arrays.resident)
    for name in lane.flat.arrays.pools:
        pool = pools[name]
        if pool.scope == "rank" and pool.nbytes:
            held[pool.memory] = held.get(pool.memory, 0) + pool.nbytes
    return held


def _own_bounds(lane: Lane, bounds: dict[str, int]) -> NDArray[np.int32]:
    code = [0 if s is None else bounds.setdefault(s.bound, len(bounds)) for s in lane.spec.signatures]
    return (
        np.array(code, dtype=np.int32)[np.tile(lane.flat.arrays.op, lane.flat.rounds)]
        if code
        else np.empty(0, np.int32)
    )


def _joint_bounds(
    meeting: Rendezvous, number: dict[Lane, int], bound: list[NDArray[np.int32]], bounds: dict[str, int]
) -> None:
    code = np.array([bounds.setdefault(s.bound, len(bounds)) for s in meeting.spec.signatures], dtype=np.int32)
    by_round = code[np.array(meeting.script, dtype=np.int64)]
    for lane, ops in meeting.members:
        bound[number[lane]][np.array(ops, dtype=np.int64)] = by_round[: len(ops)]


def _limits(engine: Engine, number: dict[Lane, int], bound: list[NDArray[np.int32]], bounds: dict[str, int]) -> None:
    """Ops that a shared resource held back name that resource: the one that held them last."""
    resources = engine.scene.system.topology.resources
    names: dict[int, int] = {}
    for (owner, k, _), log in engine.history.changes.items():
        held_by = -1
        for _, _, limit in log:
            if limit >= 0:
                held_by = limit
        if held_by < 0:
            continue
        if held_by not in names:
            names[held_by] = bounds.setdefault(resources.name(engine.scene.row[held_by]), len(bounds))
        code = names[held_by]
        for lane, op in [(owner, k)] if isinstance(owner, Lane) else [(lane, ops[k]) for lane, ops in owner.members]:
            bound[number[lane]][op] = code


def _behind(lane: Lane, steps: int) -> NDArray[np.bool_]:
    """Ops of steps behind the last one that was asked for."""
    arrays = lane.flat.arrays
    step = np.arange(lane.flat.rounds)[:, None] * arrays.period + arrays.step
    return (step >= steps).reshape(-1)
