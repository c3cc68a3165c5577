"""A strand in progress."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from clustersim.engine.sharing.activity import Activity
from clustersim.engine.strands.gates import reach

if TYPE_CHECKING:
    from clustersim.engine.loop.lane import Lane

__all__ = ["Stretch"]


class Stretch:
    """A strand in progress, from one of its ops to its end.

    Attributes
    ----------
    lane : Lane
    strands : Strands
        those of the lane
    first : int
        place of its first op that runs at one speed throughout
    last : int
        place up to which it goes on; that of a knot, or behind the end of the strand
    alone : bool
        whether nothing else runs on the lane that could slow it, or be slowed
    since : int
        when the first op starts [ns], and ``bent`` ends
    taken : int
        SMs that collectives hold of the lane
    bent : Activity or None
        the op before the first, whose speed has changed while it ran
    due, held : int
        as those of :class:`~clustersim.engine.sharing.activity.Activity`
    """

    __slots__ = ("alone", "bent", "due", "first", "held", "lane", "last", "since", "strands", "taken")

    def __init__(self, lane: Lane, first: int, since: int, taken: int, *, alone: bool) -> None:
        self.lane = lane
        self.strands = lane.strands
        self.first = first
        self.since = since
        self.taken = taken
        self.alone = alone
        begins = lane.strands.begins(0)
        self.last = reach(lane, first, since + begins[first + 1] - begins[first], alone=alone)
        self.bent: Activity | None = None
        self.due = -1
        self.held = -1

    @property
    def end(self) -> int:
        """When it will have been played [ns]."""
        begins = self.strands.begins(self.taken)
        return self.since + begins[self.last] - begins[self.first]

    def place(self, now: int, *, begun: bool) -> tuple[int, int]:
        """(place of the op in progress, when it started [ns]); one that starts now counts where ``begun``.

        While ``bent`` runs, the place of that and the last change of its speed.
        """
        bent = self.bent
        if bent is not None and (now < self.since or (now == self.since and not begun)):
            return self.first - 1, bent.since
        begins = self.strands.begins(self.taken)
        shift = self.since - begins[self.first]
        place = (bisect_right if begun else bisect_left)(begins, now - shift, self.first + 1, self.last) - 1
        return place, begins[place] + shift

    def unbend(self) -> None:
        """Write the end of an op whose speed has changed; what is played from here on runs at one speed."""
        if self.bent is not None:
            self.lane.end[self.bent.number] = self.since
            self.bent = None

    def play(self, until: int) -> None:
        """Leave to the lane what has been played, up to the op before a place."""
        if until > self.first:
            self.lane.played.append((self.first, until, self.since, self.taken))
