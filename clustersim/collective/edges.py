"""Edges: how much each of many equal groups puts on which resource."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["Edges"]

_AT_ONCE = 1 << 20
"""Columns of routes that are counted together: their copies stay in some tens of megabytes."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Edges:
    """E pairs of a group and a resource that it crosses, each once, with a load in every column.

    Parameters
    ----------
    group, row : NDArray[int64], shape (E,)
        position of the group, resource; sorted by both
    load : NDArray[int64], shape (E, S)
        by column
    """

    group: NDArray[np.int64]
    row: NDArray[np.int64]
    load: NDArray[np.int64]

    @classmethod
    def of(cls, rows: NDArray[np.int64], nbytes: NDArray[np.int64]) -> Edges:
        """Sum what each group puts on each row.

        Parameters
        ----------
        rows : NDArray[int64], shape (n, k)
            rows that each group crosses, -1 for none; the same row may stand there several times
        nbytes : NDArray[int64], shape (k, S)
            what it puts on each by column, alike for all groups
        """
        used = nbytes.any(axis=1)
        if not used.all():
            rows, nbytes = rows[:, used], nbytes[used]
        num_rows = int(rows.max(initial=-1)) + 1
        if len(rows) * num_rows * nbytes.shape[1] <= rows.size:  # many flows over few resources: counting beats sorting
            return cls._counted(rows, nbytes, num_rows)
        order = np.argsort(rows, axis=1, kind="stable")
        ordered = np.take_along_axis(rows, order, axis=1)
        starts = ordered >= 0
        starts[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
        valid = (ordered >= 0).reshape(-1)
        load = nbytes[order.reshape(-1)[valid]]
        first = np.flatnonzero(starts.reshape(-1)[valid])
        group, _ = np.nonzero(starts)
        return cls(group=group, row=ordered[starts], load=np.add.reduceat(load, first, axis=0) if len(first) else load)

    @classmethod
    def merged(cls, parts: Sequence[tuple[NDArray[np.int64], Edges]], *, num_rows: int, num_columns: int) -> Edges:
        """Edges of some columns each as those of all.

        Parameters
        ----------
        parts : Sequence[tuple[NDArray[int64], Edges]]
            (columns, their edges)
        num_rows, num_columns : int
            resources; columns of all parts together
        """
        places = [part.places(num_rows) for _, part in parts]
        place = np.unique(np.concatenate(places))
        load = np.zeros((len(place), num_columns), dtype=np.int64)
        for at, (columns, part) in zip(places, parts, strict=True):
            load[np.searchsorted(place, at)[:, None], columns] += part.load  # a place stands in a part once
        return cls(group=place // num_rows, row=place % num_rows, load=load)

    def places(self, num_rows: int) -> NDArray[np.int64]:
        """Group and row of each edge as one number, ascending; shape (E,)."""
        return self.group * num_rows + self.row

    def largest(self, value: NDArray[np.generic], n: int) -> NDArray[np.float64]:
        """Largest of the n groups' values, shape (n,); 0 for a group without any edge. One value an edge."""
        result = np.zeros(n, dtype=value.dtype)
        if len(self.group):
            first = np.flatnonzero(np.concatenate([[True], self.group[1:] != self.group[:-1]]))
            result[self.group[first]] = np.maximum.reduceat(value, first)
        return result

    def busiest(self, capacity: NDArray[np.float64], n: int) -> NDArray[np.float64]:
        """Time of the busiest resource of each of n groups by column, shape (n, S) [s]; ``capacity`` by row [B/s]."""
        columns = range(self.load.shape[1])
        return np.stack([self.largest(self.load[:, c] / capacity[self.row], n) for c in columns], axis=1)

    @classmethod
    def _counted(cls, rows: NDArray[np.int64], nbytes: NDArray[np.int64], num_rows: int) -> Edges:
        """As :meth:`of`, by adding every flow's bytes to its resource's."""
        n = len(rows)
        total = np.zeros((n * num_rows, nbytes.shape[1]), dtype=np.int64)
        seen = np.zeros(n * num_rows, dtype=bool)
        for group, start in product(range(n), range(0, rows.shape[1], _AT_ONCE)):
            block = rows[group, start : start + _AT_ONCE]
            valid = block >= 0
            place, carried = block[valid] + group * num_rows, nbytes[start : start + _AT_ONCE][valid]
            times = np.bincount(place, minlength=n * num_rows)
            seen |= times > 0
            if len(carried) and (carried == carried[0]).all():  # as in an all-to-all
                total += times[:, None] * carried[0]
            else:
                np.add.at(total, place, carried)
        place = np.flatnonzero(seen)
        return cls(group=place // num_rows, row=place % num_rows, load=total[place])
