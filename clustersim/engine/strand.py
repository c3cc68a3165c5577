"""Strands: ops of a lane of which each waits for the one before it and releases the next one only.

When the first of them starts, all their times are known: one event at the end of the strand stands for all of it. What
can change them is only that a collective takes SMs of the lane, or gives them back; the stretch of the strand that is
left then goes on at its new speed, the op in progress with the work that is left of it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.flat import Flat

if TYPE_CHECKING:
    from clustersim.engine.lane import Lane
    from clustersim.engine.sharing import Activity

__all__ = ["Strands", "Stretch", "find_strands"]

Played = tuple[int, int, int, int]
"""(first place, place behind the last, instant of the first's start [ns], SMs taken): what was played of a strand."""


class Strands:
    """All strands of a program on one kind of device, laid end to end; B ops.

    Parameters
    ----------
    ops : NDArray[int64], shape (B,)
        op at each place
    first : NDArray[int64], shape (number of strands,)
        place of each strand's first op
    ns, sm_ns : NDArray[int64], shape (B,)
        duration of each [ns], and the part of it that grows as SMs are taken
    num_sms : int
        of the device
    num_ops : int
        of the program

    Attributes
    ----------
    at : array of int32
        by op, its place; -1 for ops on no strand
    stop : array of int64
        by place, the place behind the last of its strand
    slowed : array of int64
        by place, the place behind the last op of its strand that taken SMs slow; 0 where they slow none
    """

    __slots__ = ("_begins", "_ns", "_num_sms", "_sm_ns", "at", "ops", "slowed", "stop")

    def __init__(
        self,
        ops: NDArray[np.int64],
        first: NDArray[np.int64],
        ns: NDArray[np.int64],
        sm_ns: NDArray[np.int64],
        num_sms: int,
        num_ops: int,
    ) -> None:
        at = np.full(num_ops, -1, dtype=np.int32)
        at[ops] = np.arange(len(ops))
        lengths = np.diff(np.append(first, len(ops)))
        slowed = np.where(sm_ns > 0, np.arange(1, len(ops) + 1), 0)
        self.ops = ops
        self.at = array("i", at.tobytes())
        self.stop = _array(np.repeat(first + lengths, lengths))
        self.slowed = _array(np.repeat(np.maximum.reduceat(slowed, first), lengths) if len(ops) else slowed)
        self._ns = ns
        self._sm_ns = sm_ns
        self._num_sms = num_sms
        self._begins: dict[int, array[int]] = {}

    def begins(self, taken: int) -> array[int]:
        """By place, how long all ops before it take while ``taken`` SMs are [ns], shape (B + 1,).

        The same whole numbers as :meth:`clustersim.engine.scene.Signature.beside`.
        """
        if taken not in self._begins:
            free = max(1, self._num_sms - taken)
            work = (self._ns - self._sm_ns) * free + self._sm_ns * self._num_sms
            ns = -(-work // free) if taken else self._ns
            self._begins[taken] = _array(np.concatenate([[0], np.cumsum(ns)]))
        return self._begins[taken]

    def is_slowed(self, place: int) -> bool:
        """Whether taken SMs slow the op at a place."""
        return bool(self._sm_ns[place])

    def write(self, played: Sequence[Played], start: array[int], end: array[int]) -> None:
        """Write what was played as start and end by op [ns]."""
        if not played:
            return
        first, last, since, taken = np.array(played, dtype=np.int64).reshape(-1, 4).T
        starts, ends = np.frombuffer(start, dtype=np.int64), np.frombuffer(end, dtype=np.int64)
        for sms in np.unique(taken).tolist():
            mine = np.flatnonzero(taken == sms)
            begins = np.frombuffer(self.begins(sms), dtype=np.int64)
            length = last[mine] - first[mine]
            place = np.arange(int(length.sum())) + np.repeat(first[mine] - np.cumsum(length) + length, length)
            shift = np.repeat(since[mine] - begins[first[mine]], length)
            starts[self.ops[place]] = begins[place] + shift
            ends[self.ops[place]] = begins[place + 1] + shift


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
        place behind the last op of the strand
    since : int
        when the first op starts [ns], and ``bent`` ends
    taken : int
        SMs that collectives hold of the lane
    bent : Activity or None
        the op before the first, whose speed has changed while it ran
    due, held : int
        as those of :class:`~clustersim.engine.sharing.Activity`
    """

    __slots__ = ("bent", "due", "first", "held", "lane", "last", "since", "strands", "taken")

    def __init__(self, lane: Lane, first: int, since: int, taken: int) -> None:
        self.lane = lane
        self.strands = lane.strands
        self.first = first
        self.last = lane.strands.stop[first]
        self.since = since
        self.taken = taken
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


def find_strands(
    flat: Flat, plain: NDArray[np.bool_], ns: NDArray[np.int64], sm_ns: NDArray[np.int64], num_sms: int
) -> Strands:
    """The strands of two ops and more.

    Parameters
    ----------
    flat : Flat
    plain : NDArray[bool], shape (ops,)
        ops whose end is known when they start, but for the SMs that are taken from them
    ns, sm_ns : NDArray[int64], shape (ops,)
        of those, as :class:`Strands` has them
    """
    before = np.flatnonzero(plain & (flat.follower >= 0))
    before = before[plain[flat.follower[before]]]
    ahead = np.arange(len(flat))
    ahead[flat.follower[before]] = before
    place = (ahead != np.arange(len(flat))).astype(np.int64)
    joined = place > 0
    joined[before] = True
    while True:  # each round looks twice as far ahead
        farther = ahead[ahead]
        if np.array_equal(farther, ahead):
            break
        place += place[ahead]
        ahead = farther
    ops = np.flatnonzero(joined)
    ops = ops[np.argsort(ahead[ops] * len(flat) + place[ops], kind="stable")]
    return Strands(ops, np.flatnonzero(place[ops] == 0), ns[ops], sm_ns[ops], num_sms, len(flat))


def _array(values: NDArray[np.int64]) -> array[int]:
    return array("q", values.astype(np.int64).tobytes())
