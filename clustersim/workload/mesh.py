"""The mesh: how ranks are numbered along the axes of parallelism, and the process groups that follow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.job import GroupFamily

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

    def groups(self, axis: str) -> NDArray[np.int64]:
        """Ranks that differ along ``axis`` only, shape (num_groups, size), in order of the first member."""
        inner = math.prod(self.sizes[: self.names.index(axis)])
        grid = np.arange(self.num_ranks, dtype=np.int64).reshape(-1, self.size(axis), inner)
        return np.ascontiguousarray(grid.swapaxes(1, 2)).reshape(-1, self.size(axis))

    def families(self, *, wrap: bool, tied: bool) -> tuple[GroupFamily, ...]:
        """Process groups of a training job; an axis of size 1 has none.

        Parameters
        ----------
        wrap : bool
            the last stage also sends to the first, as chunks of an interleaved schedule do
        tied : bool
            first and last stage share the embedding and sum its gradient

        Returns
        -------
        tuple[GroupFamily, ...]
            ``tp`` and ``dp``; ``forward`` and ``backward`` of (sender, receiver) pairs; ``embedding`` of
            (first stage, last stage) pairs
        """
        families = [
            GroupFamily(name=axis, members=self.groups(axis), slots=(axis,))
            for axis in ("tp", "dp")
            if self.size(axis) > 1
        ]
        if self.size("pp") == 1:
            return tuple(families)
        stages = self.groups("pp")
        pairs = np.stack([stages, np.roll(stages, -1, axis=1)], axis=2)
        pairs = pairs if wrap else pairs[:, :-1]
        forward = np.ascontiguousarray(pairs.reshape(-1, 2))
        families += [
            GroupFamily(name="forward", members=forward, slots=("forward_out", "forward_in")),
            GroupFamily(
                name="backward", members=np.ascontiguousarray(forward[:, ::-1]), slots=("backward_out", "backward_in")
            ),
        ]
        if tied:
            ends = np.ascontiguousarray(stages[:, [0, -1]])
            families.append(GroupFamily(name="embedding", members=ends, slots=("embedding",)))
        return tuple(families)
