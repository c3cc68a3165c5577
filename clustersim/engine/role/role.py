"""A role: one program over its rounds, laid flat, with what can run beside what. All lanes of a program share it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.role.company import Company, company, pivot_stream
from clustersim.engine.role.flat import Flat, flatten, int32
from clustersim.workload.arrays import Arrays

__all__ = ["Role"]


@dataclass(frozen=True, eq=False)
class Role:
    """A program and its rounds.

    Attributes
    ----------
    arrays : Arrays
    rounds : int
        times that it is played
    """

    arrays: Arrays
    rounds: int

    @cached_property
    def flat(self) -> Flat:
        """The ops of all rounds, joined."""
        return flatten(self.arrays, self.rounds)

    @cached_property
    def op(self) -> NDArray[np.int64]:
        """Distinct op of each flat op."""
        return np.tile(self.arrays.op, self.rounds).astype(np.int64)

    @cached_property
    def op_array(self) -> array[int]:
        """The same, for the loop."""
        return int32(self.op)

    @cached_property
    def step(self) -> NDArray[np.int64]:
        """Optimizer step of each flat op."""
        arrays = self.arrays
        return (np.arange(self.rounds)[:, None] * arrays.period + arrays.step).reshape(-1)

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Number of each flat op among those of its step, in the order of the program."""
        sizes = np.bincount(self.step)
        place = np.empty(len(self.step), dtype=np.int64)
        place[np.argsort(self.step, kind="stable")] = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return place

    @cached_property
    def beside(self) -> Company:
        """What can run beside the GPU's own ops."""
        return company(self.flat, pivot_stream(self.arrays))
