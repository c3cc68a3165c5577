"""Strands: ops of a lane of which each waits for the one before it and releases the next one only.

When the first of them starts, all their times are known: one event at the end of the strand stands for all of it. What
can change them is only that a collective takes SMs of the lane, or gives them back; the stretch of the strand that is
left then goes on at its new speed, the op in progress with the work that is left of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.role.flat import int32
from clustersim.engine.strands.knot import Course, Knots

__all__ = ["Played", "Strands"]

Played = tuple[int, int, int, int]
"""(first place, place behind the last, instant of the first's start [ns], SMs taken): what was played of a strand."""


class Strands:
    """All strands of a program on one kind of device, laid end to end; P places, each of an op or of a knot.

    Parameters
    ----------
    ops : NDArray[int64], shape (P,)
        op at each place; of a knot its first one
    first : NDArray[int64], shape (number of strands,)
        place of each strand's first op
    ns, sm_ns : NDArray[int64], shape (P,)
        duration of each op [ns], and the part of it that grows as SMs are taken; 0 for a knot
    knot : NDArray[int64], shape (P,)
        number of each knot; -1 for an op
    num_sms : int
        of the device
    num_ops : int
        of the program
    knots : Knots
    gates : Mapping[int, tuple[tuple[int, int], ...]]

    Attributes
    ----------
    ops, knot : array of int32
        as given
    at : array of int32
        by op, its place; -1 for ops on no strand, and in knots
    stop : array of int64
        by place, the place behind the last of its strand
    slowed : array of int64
        by place, the place behind the last one of its strand that collectives or other ops of the lane slow; 0 where
        they slow none
    hurdle : array of int64
        by place, that of the first knot or gate of its strand that does not stand before it, else ``stop``
    gates : Mapping[int, tuple[tuple[int, int], ...]]
        by place, its ops that also wait for others: (op, how many it waits for on the strand or in the knot)
    knots : Knots
    has_knots : bool
    """

    __slots__ = (
        "_begins",
        "_knot",
        "_ns",
        "_num_known",
        "_num_sms",
        "_ops",
        "_sm_ns",
        "at",
        "gates",
        "has_knots",
        "hurdle",
        "knot",
        "knots",
        "ops",
        "slowed",
        "stop",
    )

    def __init__(
        self,
        ops: NDArray[np.int64],
        first: NDArray[np.int64],
        ns: NDArray[np.int64],
        sm_ns: NDArray[np.int64],
        knot: NDArray[np.int64],
        num_sms: int,
        num_ops: int,
        knots: Knots,
        gates: Mapping[int, tuple[tuple[int, int], ...]],
    ) -> None:
        at = np.full(num_ops, -1, dtype=np.int32)
        at[ops[knot < 0]] = np.flatnonzero(knot < 0)
        lengths, number = np.diff(np.append(first, len(ops))), np.arange(len(ops))
        stop = np.repeat(first + lengths, lengths)
        slowed = np.where((sm_ns > 0) | (knot >= 0), number + 1, 0)
        hurdle = np.where(knot >= 0, number, len(ops))
        hurdle[list(gates)] = list(gates)
        hurdle = np.minimum.accumulate(hurdle[::-1])[::-1]
        self.ops = int32(ops)
        self.at = int32(at)
        self.stop = _array(stop)
        self.slowed = _array(np.repeat(np.maximum.reduceat(slowed, first), lengths) if len(ops) else slowed)
        self.hurdle = _array(np.minimum(hurdle, stop))
        self.gates = gates
        self.knot = int32(knot)
        self.knots = knots
        self.has_knots = bool((knot >= 0).any())
        self._ops = ops
        self._knot = knot
        self._ns = ns
        self._sm_ns = sm_ns
        self._num_sms = num_sms
        self._num_known = 0
        self._begins: dict[int, array[int]] = {}

    def begins(self, taken: int) -> array[int]:
        """By place, how long all before it takes while ``taken`` SMs are [ns], shape (P + 1,).

        The same whole numbers as :meth:`~clustersim.engine.scene.signature.Signature.beside`. Knots count as soon as
        their course is known, and where no SMs are taken.
        """
        begins = self._begins.get(taken)
        if begins is None or (self.has_knots and not taken and self._num_known < self.knots.num_known):
            ns = self._ns
            if taken:
                free = max(1, self._num_sms - taken)
                work = (self._ns - self._sm_ns) * free + self._sm_ns * self._num_sms
                ns = -(-work // free)
            elif self.has_knots:
                self._num_known = self.knots.num_known
                known = np.array([0 if c is None else c.ns for c in self.knots.courses])
                ns = np.where(self._knot >= 0, known[self._knot], ns)
            begins = self._begins[taken] = _array(np.concatenate([[0], np.cumsum(ns)]))
        return begins

    def on_strands(self) -> NDArray[np.int64]:
        """The ops that stand on strands by themselves."""
        return self._ops[self._knot < 0]

    def is_slowed(self, place: int) -> bool:
        """Whether taken SMs slow the op at a place."""
        return bool(self._sm_ns[place])

    def is_unknown(self, place: int) -> bool:
        """Whether a knot stands at a place, or behind the last one, whose course is not known."""
        return place < len(self.knot) and self.knot[place] >= 0 and self.course(place) is None

    def course(self, place: int) -> Course | None:
        """That of the knot at a place, if it is known."""
        return self.knots.courses[self.knot[place]]

    def write(self, played: Sequence[Played], start: array[int], end: array[int]) -> list[tuple[int, int]]:
        """Write what was played as start and end by op [ns].

        Returns
        -------
        list[tuple[int, int]]
            (place, begin [ns]) of each knot that was played
        """
        tied: list[tuple[int, int]] = []
        if not played:
            return tied
        first, last, since, taken = np.array(played, dtype=np.int64).reshape(-1, 4).T
        starts, ends = np.frombuffer(start, dtype=np.int64), np.frombuffer(end, dtype=np.int64)
        for sms in np.unique(taken).tolist():
            mine = np.flatnonzero(taken == sms)
            begins = np.frombuffer(self.begins(sms), dtype=np.int64)
            length = last[mine] - first[mine]
            place = np.arange(int(length.sum())) + np.repeat(first[mine] - np.cumsum(length) + length, length)
            shift = np.repeat(since[mine] - begins[first[mine]], length)
            single = self._knot[place] < 0
            starts[self._ops[place[single]]] = begins[place[single]] + shift[single]
            ends[self._ops[place[single]]] = begins[place[single] + 1] + shift[single]
            for number in np.unique(self._knot[place[~single]]).tolist():
                alike = np.flatnonzero(self._knot[place] == number)
                course, begin = self.knots.courses[number], begins[place[alike]] + shift[alike]
                assert course is not None
                ops = self._ops[place[alike], None] + np.arange(len(course.start))
                starts[ops], ends[ops] = begin[:, None] + course.start, begin[:, None] + course.end
                if course.logs:
                    tied += zip(place[alike].tolist(), begin.tolist(), strict=True)
        return tied


def _array(values: NDArray[np.int64]) -> array[int]:
    return array("q", values.astype(np.int64).tobytes())
