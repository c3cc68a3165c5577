"""The seam: what an optimizer has to tell about itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from clustersim.hardware.kernel import Kernel
from clustersim.workload.matrix import Matrix
from clustersim.workload.precision import Recipe

__all__ = ["Optimizer"]


class Optimizer(Protocol):
    """Any object with these can stand in for the ones in :data:`clustersim.workload.optimizer.OPTIMIZERS`."""

    @property
    def name(self) -> str:
        """Shown in the trace."""

    def state_nbytes(self, parameters: int, *, recipe: Recipe, matrices: Sequence[Matrix], shards: int) -> int:
        """What one rank keeps beside weights, master copy and gradients [B].

        Parameters
        ----------
        parameters : int
            weights of a rank before the state is split
        recipe : Recipe
        matrices : Sequence[Matrix]
            those of the weights that are matrices
        shards : int
            ranks over which the state is split
        """

    def kernels(
        self, parameters: int, *, recipe: Recipe, gradient_width: int, matrices: Sequence[Matrix], shards: int
    ) -> tuple[Kernel, ...]:
        """The update of one rank's shard, from gradients of ``gradient_width`` bytes to new weights."""

    def gathered_nbytes(self, matrices: Sequence[Matrix], shards: int) -> int:
        """Payload [B] of the all-gather over ``shards`` ranks that an update needs; 0: it needs none."""
