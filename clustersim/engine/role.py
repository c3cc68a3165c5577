"""A role: one program over its steps, laid flat, with what can run beside what. All lanes of a program share it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.flat import Flat, flatten
from clustersim.engine.overlap import Company, company, pivot_stream
from clustersim.workload.arrays import Arrays

__all__ = ["Role"]


@dataclass(frozen=True, eq=False)
class Role:
    """A program and its steps.

    Attributes
    ----------
    arrays : Arrays
    steps : int
    """

    arrays: Arrays
    steps: int

    @cached_property
    def flat(self) -> Flat:
        """The ops of all steps, joined."""
        return flatten(self.arrays, self.steps)

    @cached_property
    def op(self) -> NDArray[np.int64]:
        """Distinct op of each flat op."""
        return np.tile(self.arrays.op, self.steps).astype(np.int64)

    @cached_property
    def op_list(self) -> list[int]:
        """The same, for the loop."""
        numbers: list[int] = self.op.tolist()
        return numbers

    @cached_property
    def beside(self) -> Company:
        """What can run beside the GPU's own ops."""
        return company(self.flat, pivot_stream(self.arrays))
