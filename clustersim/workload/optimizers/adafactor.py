"""Adafactor: of a matrix it keeps the row and column averages of the squared gradient only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.matrix import Matrix, elements
from clustersim.workload.number_format import WIDTH
from clustersim.workload.precision import Recipe

__all__ = ["ADAFACTOR", "Adafactor"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Adafactor:
    """Sub-linear memory: n + m fp32 numbers of an n × m matrix, one of each parameter that is in no matrix.

    An update takes three passes over the gradient, whose squares are summed by row and column before they scale it and
    whose scaled size is found before it is applied, and three over the weight: its size, then read and write. This
    assumes that each is one fused kernel. A shard of the state is taken to be an even part of it.

    Parameters
    ----------
    name : str

    References
    ----------
    Shazeer and Stern, Adafactor, 2018, sections 3 (factored averages), 6 and 8 (sizes of update and weight, β₁ = 0).
    """

    name: str = "adafactor"

    def state_nbytes(self, parameters: int, *, recipe: Recipe, matrices: Sequence[Matrix] = (), shards: int = 1) -> int:
        """Row and column averages, and the whole average of what is in no matrix [B]."""
        factored = sum((matrix.features_in + matrix.features_out) * matrix.count for matrix in matrices)
        return 4 * -(-(factored + parameters - elements(matrices)) // shards)

    def kernels(
        self, parameters: int, *, recipe: Recipe, gradient_width: int, matrices: Sequence[Matrix] = (), shards: int = 1
    ) -> tuple[Kernel, ...]:
        """The passes of an update of a shard."""
        copy = WIDTH[recipe.weights] if recipe.master else 0
        each = 3 * gradient_width + 3 * recipe.updated_width + copy
        state = self.state_nbytes(parameters, recipe=recipe, matrices=matrices, shards=shards)
        return (memory_pass(each * -(-parameters // shards) + 2 * state, dtype="fp32"),)

    def gathered_nbytes(self, matrices: Sequence[Matrix], shards: int) -> int:
        """Nothing but the sums of rows and columns, which are left out."""
        return 0


ADAFACTOR = Adafactor()
