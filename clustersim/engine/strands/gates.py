"""Gates: how far a strand goes on without being looked at.

An op of a strand that also waits for what is told ahead is a gate: open where all of that will have ended by the time
the strand comes there. A knot stops a strand as a gate does, unless its course is known and nothing runs beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clustersim.engine.loop.lane import Lane

__all__ = ["is_open", "reach"]


def is_open(lane: Lane, place: int, at: int) -> bool:
    """Whether all that the ops at a place of a strand wait for elsewhere will have ended at an instant."""
    gate = lane.strands.gates.get(place, ())
    return all(lane.waits[op] == left and lane.behind[op] <= at for op, left in gate)


def reach(lane: Lane, place: int, over: int, *, alone: bool) -> int:
    """The place up to which a strand goes on without being looked at, from one of its places.

    To its end, but for gates that may not be open by then, knots whose course is not known, and any knot where the
    strand is not alone on the lane. It never ends behind a knot, but before it.

    Parameters
    ----------
    lane : Lane
    place : int
    over : int
        when what stands there is over, or later [ns]
    alone : bool
        whether nothing else runs on the lane that could slow the strand, or be slowed
    """
    strands = lane.strands
    stop, hurdle = strands.stop[place], strands.hurdle
    until = hurdle[place + 1] if place + 1 < stop else stop
    if until == stop:
        return stop
    begins, knot = strands.begins(0), strands.knot
    while until < stop:
        if knot[until] >= 0 and not (alone and strands.course(until)):
            return until
        # it comes there when no SMs are taken, or later
        if until in strands.gates and not is_open(lane, until, over + begins[until] - begins[place + 1]):
            return until - 1 if knot[until - 1] >= 0 else until
        until = hurdle[until + 1] if until + 1 < stop else stop
    return stop
