"""What has nothing left to wait for: the end of an op releases those behind it.

A plain op ends when it was said to, whatever happens, so its end is no event: it is told ahead to those that wait for
it, and so are the ends of the plain ops behind it.
"""

from __future__ import annotations

from clustersim.engine.loop.calendar import Calendar
from clustersim.engine.loop.end_code import LATE, STRUNG
from clustersim.engine.loop.lane import Lane

__all__ = ["Ready"]


class Ready:
    """Ops to start at the present instant.

    Parameters
    ----------
    calendar : Calendar
        takes those that start later

    Attributes
    ----------
    starting : list[tuple[Lane, int]]
        those to start next
    late : list[tuple[Lane, int]]
        those to start when the collectives of the instant have taken their SMs
    told : int
        the last end that was told ahead [ns]
    """

    __slots__ = ("_calendar", "late", "starting", "told")

    def __init__(self, calendar: Calendar) -> None:
        self.starting: list[tuple[Lane, int]] = []
        self.late: list[tuple[Lane, int]] = []
        self.told = 0
        self._calendar = calendar

    def release(self, lane: Lane, i: int, at: int, now: int) -> None:
        """An op ends at ``at``, which may be later than now: what waits for nothing else starts then."""
        waits, behind, ns, targets, first = lane.waits, lane.behind, lane.ns, lane.targets, lane.first_target
        ends: list[tuple[int, int]] = []
        while True:
            for j in targets[first[i] : first[i + 1]]:
                if at > now and behind[j] < at:
                    behind[j] = at
                waits[j] -= 1
                if waits[j]:
                    continue
                took, begin = ns[j], behind[j]
                if begin < now:
                    begin = now
                if took >= 0:
                    end = begin + took
                    lane.start[j] = begin
                    lane.end[j] = end
                    if lane.gives is not None and j in lane.gives:
                        self._calendar.plan(lane, j, end, now)
                    else:
                        ends.append((j, end))
                elif took == STRUNG and not lane.strands.slowed[lane.strands.at[j]]:
                    ends.append(lane.play(j, begin))
                elif begin > now:
                    self._calendar.plan(lane, j, begin, now)
                elif took in LATE:
                    self.late.append((lane, j))
                else:
                    self.starting.append((lane, j))
            if at > self.told:
                self.told = at
            if not ends:
                return
            i, at = ends.pop()

    def start(self, lane: Lane, j: int, took: int, now: int) -> None:
        """A plain op starts now."""
        then = now + took
        lane.start[j] = now
        lane.end[j] = then
        if lane.gives is not None and j in lane.gives:
            self._calendar.plan(lane, j, then, now)
        else:
            self.release(lane, j, then, now)

    def forget(self, lanes: set[Lane]) -> None:
        """Start nothing of cancelled lanes."""
        for waiting in (self.starting, self.late):
            waiting[:] = [(lane, j) for lane, j in waiting if lane not in lanes]
