"""Stopping a job in the middle: what it has done stays, what it was doing ends here."""

from __future__ import annotations

from clustersim.engine.loop.event_loop import EventLoop
from clustersim.engine.loop.lane import Lane
from clustersim.engine.sharing.activity import Activity

__all__ = ["cancel"]


def cancel(loop: EventLoop, job: int, gone: set[Lane]) -> None:
    """End what runs of a job; nothing more of it starts.

    Parameters
    ----------
    loop : EventLoop
    job : int
    gone : set[Lane]
        its lanes
    """
    now = int(loop.calendar.env.now)
    loop.cancelled |= gone
    loop.ready.forget(gone)
    for lane in gone:
        loop.stretches.untie_all(lane, now)
    stopped = {}
    for activity in _in_progress(loop, job):
        stopped[activity.owner, activity.number] = activity.signature.phase, activity.due
        activity.due = -1
        if activity.demands:
            loop.sharing.remove(activity)
    for lane in gone:
        lane.cancel(now)
        for i, begun in enumerate(lane.start):
            if begun > now or begun == now > loop.handled:  # it was told ahead
                lane.start[i] = lane.end[i] = -1
            elif begun >= 0 and (lane.end[i] < 0 or lane.end[i] > now):
                loop.history.cut(lane, i, stopped, now)
                lane.end[i] = now
    loop.stores.forget(gone)


def _in_progress(loop: EventLoop, job: int) -> list[Activity]:
    """Each activity of a job once, however often the calendar has it."""
    found = (
        activity
        for then, bucket in loop.calendar.due.items()
        for activity in bucket
        if type(activity) is Activity and activity.held == then and activity.due >= 0 and activity.owner.spec.job == job
    )
    return list(dict.fromkeys(found))
