"""Knots: ops of a lane of which several run at once, between two ops of a strand.

All of a knot waits for the op before it, and the op behind it for all of the knot: parts of a product beside the
exchanges of their results, say. While nothing else runs on the lane that could slow it, equal knots take the same
course, so the course of the first one that is played so is kept, and the others are played as one op of their strand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Course", "Knots"]

Log = tuple[tuple[int, int, int], ...]
"""Changes of an op's rate: (since the knot began [ns], rate, which of the lane's own resources limits it, or -1)."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Course:
    """How a knot goes.

    Parameters
    ----------
    start, end : NDArray[int64], shape (number of its ops,)
        since it began [ns]
    logs : Mapping[int, Log]
        by op of the knot, those whose rate changed
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    logs: Mapping[int, Log]

    def spans(self) -> Iterator[tuple[int, int]]:
        """(start, end) of each op [ns]."""
        return zip(self.start.tolist(), self.end.tolist(), strict=True)

    @property
    def ns(self) -> int:
        """How long it takes [ns]."""
        return int(self.end.max())


class Knots:
    """The courses of knots by what they are made of.

    Attributes
    ----------
    courses : list[Course | None]
        by number of the knot; None until one has been played
    num_known : int
        of the courses
    """

    __slots__ = ("_numbers", "courses", "num_known")

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self.courses: list[Course | None] = []
        self.num_known = 0

    def number(self, made_of: tuple[object, ...]) -> int:
        """Number of the knots that are made so."""
        if made_of not in self._numbers:
            self._numbers[made_of] = len(self.courses)
            self.courses.append(None)
        return self._numbers[made_of]

    def keep(self, number: int, course: Course) -> None:
        """Play the others of this number alike."""
        self.num_known += self.courses[number] is None
        self.courses[number] = course
