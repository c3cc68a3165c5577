"""Knots op by op: the course of one that was played so, and where the ops of one stand that something came near."""

from __future__ import annotations

import numpy as np

from clustersim.engine.loop.end_code import COLLECTIVE, SLOWED
from clustersim.engine.loop.history import History
from clustersim.engine.loop.lane import Lane
from clustersim.engine.sharing.activity import Activity
from clustersim.engine.strands.knot import Course
from clustersim.engine.strands.stretch import Stretch

__all__ = ["keep_course", "untie"]


def keep_course(lane: Lane, history: History) -> None:
    """The knot that was watched on a lane has been played with nothing beside it: others of its kind go as it went."""
    assert lane.watched is not None
    (place, since), strands = lane.watched, lane.strands
    lane.watched = None
    own = {resource: k for k, resource in enumerate(lane.own)}
    base, behind = strands.ops[place], strands.ops[place + 1]
    logs = {}
    for k in range(behind - base):
        log = history.changes.get((*lane.owner(base + k), 0))
        if log is not None:
            logs[k] = tuple((when - since, rate, own.get(limit, -1)) for when, rate, limit in log)
    course = Course(
        start=np.frombuffer(lane.start, dtype=np.int64)[base:behind] - since,
        end=np.frombuffer(lane.end, dtype=np.int64)[base:behind] - since,
        logs=logs,
    )
    strands.knots.keep(strands.knot[place], course)


def untie(stretch: Stretch, place: int, since: int, now: int, *, begun: bool) -> tuple[list[int], list[Activity]]:
    """Take a strand off its lane at a knot in progress and leave the knot's ops as they are now.

    Parameters
    ----------
    stretch : Stretch
    place : int
        of the knot
    since : int
        when it began [ns]
    now : int
        [ns]
    begun : bool
        whether ops that begin now count as in progress

    Returns
    -------
    list[int]
        plain ops in progress
    list[Activity]
        other ops in progress, which are on no resource yet
    """
    lane, strands = stretch.lane, stretch.strands
    stretch.unbend()
    stretch.play(place)
    stretch.due = -1
    del lane.stretches[stretch]
    course, base = strands.course(place), strands.ops[place]
    assert course is not None
    plain: list[int] = []
    others: list[Activity] = []
    _tell(lane, base - 1, since)
    for k, (start, end) in enumerate(course.spans()):
        j = base + k
        if since + end <= now:
            lane.start[j], lane.end[j] = since + start, since + end
            if lane.ns[j] == COLLECTIVE:
                lane.rendezvous[lane.slot[j]].pending[lane.sequence[j]] = 0
            _tell(lane, j, since + end)
        elif since + start < now + begun:
            lane.start[j] = since + start
            if lane.ns[j] >= 0:
                lane.end[j] = since + end
                plain.append(j)
            else:
                others.append(_in_progress(lane, course, base, k, since, now))
    return plain, others


def _tell(lane: Lane, op: int, end: int) -> None:
    """Those that wait for an op know that it has ended."""
    for then in lane.targets[lane.first_target[op] : lane.first_target[op + 1]]:
        lane.waits[then] -= 1
        lane.behind[then] = max(lane.behind[then], end)


def _in_progress(lane: Lane, course: Course, base: int, k: int, since: int, now: int) -> Activity:
    """An op of a knot with the work that is left of it."""

    def taken(at: int) -> int:
        """SMs that the collectives of the knot hold."""
        return sum(
            lane.meeting_signature(base + n).num_sms
            for n, (start, end) in enumerate(course.spans())
            if lane.ns[base + n] == COLLECTIVE and start <= at < end
        )

    j, (owner, number) = base + k, lane.owner(base + k)
    start = int(course.start[k])
    if isinstance(owner, Lane):
        signature = lane.unshared[lane.kind[j]] if lane.ns[j] == SLOWED else lane.signatures[lane.kind[j]]
        assert signature is not None
        speed = signature.beside(taken(start), lane.num_sms)[1]
        activity = lane.running[j] = Activity(lane, j, signature, speed, since + start)
        activity.cap = signature.beside(taken(now - since), lane.num_sms)[1]
    else:
        signature = lane.meeting_signature(j)
        activity = Activity(owner, number, signature, signature.beside(0, 1)[1], since + start)
        owner.pending[number] = 0
        lane.taken += signature.num_sms
        lane.num_joined += 1
    for when, rate, limit in course.logs.get(k, ()):
        if since + when <= now:
            activity.left -= activity.rate * (since + when - activity.since)
            activity.since, activity.rate, activity.limit = since + when, rate, (*lane.own, -1)[limit]
    return activity
