"""Which ops of a program can run at the same time, by its own order.

Ops of one stream never overlap. Seen from a *pivot* stream, an op of another stream can only run between the last pivot
op that precedes it and the first pivot op that follows it. Direct dependencies and stream order are looked at, so the
answer may name ops that in truth never meet, and never misses ops that do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.role.flat import Flat
from clustersim.workload.arrays import Arrays
from clustersim.workload.op import Compute, Delay

__all__ = ["Company", "company", "pivot_stream"]


def pivot_stream(arrays: Arrays) -> int:
    """The stream with the most ops of the GPU's own: where most others meet it."""
    own = np.array([isinstance(op, Compute | Delay) for op in arrays.ops], dtype=bool)
    if not len(arrays):
        return 0
    return int(np.argmax(np.bincount(arrays.stream, weights=own[arrays.op], minlength=len(arrays.streams))))


class Company:
    """What may run beside the ops of a pivot stream.

    Time is cut into 2m + 1 places for m pivot ops: place 2k + 1 while op k runs, place 2k before it.

    Attributes
    ----------
    pivot : NDArray[int64], shape (m,)
        ops of the pivot stream, in order
    """

    __slots__ = ("_others", "_range", "pivot")

    def __init__(
        self,
        pivot: NDArray[np.int64],
        others: Sequence[tuple[NDArray[np.int64], ...]],
        places: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> None:
        self.pivot = pivot
        self._others = others
        self._range = places

    def most(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Largest sum over the other streams of one op's ``value`` each, by place.

        Parameters
        ----------
        value : NDArray[float64], shape (number of ops,)
            not negative

        Returns
        -------
        NDArray[float64], shape (2m + 1,)
        """
        total = np.zeros(2 * len(self.pivot) + 1)
        for ops, first, last in self._others:
            if value[ops].any():
                total += _range_max(value[ops], first, last)
        return total

    def meets(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each op can run at a marked place; ``marked`` by place, the answer by op."""
        count = np.concatenate([[0], np.cumsum(marked)])
        begin, end = self._range
        return np.asarray(count[end] > count[begin])


def company(flat: Flat, stream: int) -> Company:
    """Company of the ops on ``stream``."""
    of = np.tile(flat.arrays.stream, flat.rounds)
    pivot = np.flatnonzero(of == stream)
    place = np.empty(len(of), dtype=np.int64)
    place[pivot] = np.arange(len(pivot))
    before, after = flat.edges[:, 0], flat.edges[:, 1]
    into = of[before] == stream
    out = of[after] == stream
    low = np.full(len(of), -1, dtype=np.int64)
    np.maximum.at(low, after[into], place[before[into]])
    high = np.full(len(of), len(pivot), dtype=np.int64)
    np.minimum.at(high, before[out], place[after[out]])
    places = np.arange(2 * len(pivot) + 1)
    others: list[tuple[NDArray[np.int64], ...]] = []
    begin, end = np.zeros(len(of), dtype=np.int64), np.zeros(len(of), dtype=np.int64)
    begin[pivot], end[pivot] = places[1::2], places[1::2] + 1
    for s in range(len(flat.arrays.streams)):
        ops = np.flatnonzero(of == s)
        if s != stream and len(ops):
            begins = 2 * np.maximum.accumulate(low[ops]) + 2
            ends = 2 * np.minimum.accumulate(high[ops][::-1])[::-1]
            # both ends grow along the stream, so the ops that cover a place are neighbours
            begin[ops], end[ops] = begins, ends + 1
            others.append((ops, np.searchsorted(ends, places), np.searchsorted(begins, places, side="right")))
    return Company(pivot, others, (begin, end))


def _range_max(value: NDArray[np.float64], first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.float64]:
    """Largest of ``value[first:last]`` for each pair, 0 where that is empty, by a sparse table."""
    tables = [value]
    while 2 << (len(tables) - 1) <= len(value):
        half = 1 << (len(tables) - 1)
        tables.append(np.maximum(tables[-1][:-half], tables[-1][half:]))
    length = last - first
    result = np.zeros(len(first))
    level = np.frexp(np.maximum(length, 1))[1] - 1
    for k, table in enumerate(tables):
        at = np.flatnonzero((level == k) & (length > 0))
        result[at] = np.maximum(table[first[at]], table[last[at] - (1 << k)])
    return result
