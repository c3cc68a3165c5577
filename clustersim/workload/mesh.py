"""The mesh: how ranks are numbered along the axes of parallelism."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mesh"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mesh:
    """Ranks on a grid of named axes.

    With axes of size n₀, n₁, … from the innermost outwards, the rank at (i₀, i₁, …) is i₀ + n₀·(i₁ + n₁·(…)):
    neighbours on the innermost axis have consecutive ranks, so that a placement by rank puts them on one node.

    Parameters
    ----------
    names : tuple[str, ...]
        axes from the innermost outwards: ``("tp", "cp", "dp", "pp")``
    sizes : tuple[int, ...]
        ranks along each

    Raises
    ------
    ValueError
        when names repeat, numbers of names and sizes differ, or a size is below 1
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names) or len(self.names) != len(self.sizes):
            raise ValueError(f"names: {self.names} must be different, one for each of the sizes {self.sizes}")
        if any(n < 1 for n in self.sizes):
            raise ValueError(f"sizes: {self.sizes} must be at least 1")

    @property
    def num_ranks(self) -> int:
        """Product of the sizes."""
        return math.prod(self.sizes)

    def size(self, axis: str) -> int:
        """Ranks along ``axis``."""
        return self.sizes[self.names.index(axis)]

    def coordinate(self, axis: str) -> NDArray[np.int64]:
        """Position of every rank along ``axis``, shape (num_ranks,)."""
        inner = math.prod(self.sizes[: self.names.index(axis)])
        return np.arange(self.num_ranks, dtype=np.int64) // inner % self.size(axis)

    def groups(self, *axes: str) -> NDArray[np.int64]:
        """Ranks that differ along ``axes`` only, shape (num_groups, product of their sizes), by the first member.

        Members stand in the order of their ranks.
        """
        grid = np.arange(self.num_ranks, dtype=np.int64).reshape(self.sizes[::-1])
        along = [len(self.sizes) - 1 - self.names.index(axis) for axis in axes]
        across = [n for n in range(grid.ndim) if n not in along]
        num_members = math.prod(self.size(axis) for axis in axes)
        members = np.sort(grid.transpose([*across, *along]).reshape(-1, num_members), axis=1)
        return members[np.argsort(members[:, 0], kind="stable")]
