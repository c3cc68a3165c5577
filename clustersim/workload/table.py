"""Rows of whole numbers that are added one by one or many at once, and read as one array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table"]


class Table:
    """Grows by rows.

    A program is written from fragments that are repeated for every micro-batch: their rows are added as blocks, so
    that writing costs as much as there are fragments and not as there are ops.

    Parameters
    ----------
    width : int
        numbers in a row
    ordered : bool
        whether rows stand in the order in which they came; otherwise single ones may stand behind the others
    """

    __slots__ = ("_blocks", "_length", "_ordered", "_single", "_width")

    def __init__(self, width: int, *, ordered: bool = True) -> None:
        self._ordered = ordered
        self._width = width
        self._length = 0
        self._blocks: list[NDArray[np.int64]] = []
        self._single: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return self._length

    def add(self, *row: int) -> int:
        """Put a row at the end and return its number."""
        self._single.append(row)
        self._length += 1
        return self._length - 1

    def extend(self, rows: NDArray[np.int64]) -> None:
        """Put rows at the end, shape (n, width); the array must not change afterwards."""
        if len(rows):
            if self._ordered:
                self._gather()
            self._blocks.append(rows)
            self._length += len(rows)

    def rows(self) -> NDArray[np.int64]:
        """All rows, shape (number of rows, width); not to be changed."""
        self._gather()
        if len(self._blocks) != 1:
            self._blocks = [np.concatenate([np.empty((0, self._width), dtype=np.int64), *self._blocks])]
        return self._blocks[0]

    def _gather(self) -> None:
        """Single rows as a block behind the others."""
        if self._single:
            self._blocks.append(np.array(self._single, dtype=np.int64).reshape(-1, self._width))
            self._single.clear()
