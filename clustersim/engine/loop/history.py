"""How the speed of ops changed while they ran: all that starts and ends do not tell."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from clustersim.engine.loop.lane import Lane
from clustersim.engine.loop.rendezvous import Rendezvous
from clustersim.engine.scene.signature import ONE
from clustersim.engine.sharing.activity import Activity

__all__ = ["Change", "History"]

Change = tuple[int, int, int]
"""(instant [ns], rate from then on, resource that limits it, or -1)"""


class History:
    """The changes of a run.

    Attributes
    ----------
    changes : dict[tuple[Lane | Rendezvous, int, int], list[Change]]
        by (owner, number, phase), of each phase of an op whose rate changed after it started
    turns : dict[tuple[Rendezvous, int], list[int]]
        of collectives whose phases follow one another: the instants at which the next phase began [ns]
    """

    __slots__ = ("changes", "turns")

    def __init__(self) -> None:
        self.changes: dict[tuple[Lane | Rendezvous, int, int], list[Change]] = {}
        self.turns: dict[tuple[Lane | Rendezvous, int], list[int]] = {}

    def change(self, activity: Activity, rate: int, now: int) -> None:
        """From now on an op in progress runs at another rate."""
        key = activity.owner, activity.number, activity.signature.phase
        log = self.changes.get(key)
        if log is None:
            log = self.changes[key] = [(activity.since, activity.rate, -1)]
        if log[-1][0] == now:
            log[-1] = (now, rate, activity.limit)
        else:
            log.append((now, rate, activity.limit))
            activity.left -= activity.rate * (now - activity.since)
            activity.since = now
        activity.rate = rate

    def tell(self, lane: Lane, place: int, since: int, now: int) -> None:
        """How rates changed in a knot that was played as one, up to now.

        Parameters
        ----------
        lane : Lane
        place : int
            of the knot
        since : int
            when it began [ns]
        now : int
            [ns]
        """
        course = lane.strands.course(place)
        assert course is not None
        base, own = lane.strands.ops[place], (*lane.own, -1)
        for k, log in course.logs.items():
            told = [(since + when, rate, own[limit]) for when, rate, limit in log if since + when <= now]
            if told:
                self.changes[(*lane.owner(base + k), 0)] = told

    def cut(self, lane: Lane, op: int, stopped: Mapping[tuple[object, int], tuple[int, int]], now: int) -> None:
        """An op in progress is cut short: it did only part of its work.

        Parameters
        ----------
        lane : Lane
        op : int
        stopped : Mapping[tuple[object, int], tuple[int, int]]
            by (owner, number), of ops that were activities: (phase, when it would have ended [ns])
        now : int
            [ns]
        """
        owner, k = lane.owner(op)
        phases = owner.signatures[owner.script[k]].phases if isinstance(owner, Rendezvous) else ()
        begun, due = lane.start[op], lane.end[op]
        turns = self.turns.get((owner, k), [])
        if (owner, k) in stopped:
            phase, due = stopped[owner, k]
            begun = turns[-1] if turns else begun
        elif phases:  # as a plain op of its lane
            ends = list(accumulate((phase.ns for phase in phases), initial=begun))[1:]
            turns = self.turns[owner, k] = [t for t in ends[:-1] if t <= now]
            phase = len(turns)
            begun, due = [begun, *turns][-1], ends[phase]
        else:
            phase = 0
        took = max(1, due - begun)
        log = self.changes.setdefault((owner, k, phase), [(begun, -(-ONE // took), -1)])
        if log[-1] != (now, 0, -1):  # a collective has several members
            log.append((now, 0, -1))
