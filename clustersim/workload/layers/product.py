"""A product of a layer that can take its tokens in parts, as they come from or go to the ranks that share the layer."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import linear, linear_input_gradient
from clustersim.workload.shard import Shard

__all__ = ["Product"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """Tokens times a matrix of the layer, or the gradient of its input.

    Parameters
    ----------
    features_in, features_out : int
        of the matrix
    of_gradient : bool
        gradients of the output times the matrix transposed
    """

    features_in: int
    features_out: int
    of_gradient: bool = False

    def kernels(self, shard: Shard, *, tokens: int | None = None) -> tuple[Kernel, ...]:
        """Its kernels over ``tokens``, all of a micro-batch when None."""
        form = linear_input_gradient if self.of_gradient else linear
        return form(shard, self.features_in, self.features_out, tokens=tokens)
