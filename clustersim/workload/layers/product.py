"""A product of a layer that can take its tokens in parts, as they come from or go to the ranks that share the layer."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import linear, linear_input_gradient, linear_weight_gradient, memory_pass
from clustersim.workload.shard import Shard

__all__ = ["Product"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """Tokens times a matrix of the layer, or the gradient of its input.

    Parameters
    ----------
    features_in : int
        of the matrix
    features_out : tuple[int, ...]
        of each matrix that reads the same tokens: queries, keys and values, or gate and up. They are one matrix, or
        under :attr:`~clustersim.workload.shard.Shard.splits_projections` products of their own
    of_gradient : bool
        gradients of the output times the matrix transposed
    gathered : bool
        what it reads comes from the ranks that share the layer

    References
    ----------
    PyTorch, ``torch/csrc/autograd/input_buffer.cpp``: gradients that meet at one tensor are added two by two; where a
    compiler fuses the sum with the pass that reads it, only their reads are left.
    """

    features_in: int
    features_out: tuple[int, ...]
    of_gradient: bool = False
    gathered: bool = False

    def kernels(self, shard: Shard, *, tokens: int | None = None) -> tuple[Kernel, ...]:
        """Its kernels over ``tokens``, all of a micro-batch when None."""
        if self.of_gradient:
            gradients = [
                kernel
                for columns in self._columns(shard)
                for kernel in linear_input_gradient(
                    shard, self.features_in, columns, tokens=tokens, gathered=self.gathered
                )
            ]
            return (*gradients, *self._sum(shard, tokens))
        first, *others = (
            linear(shard, self.features_in, columns, tokens=tokens, gathered=self.gathered)
            for columns in self._columns(shard)
        )
        # what all of them read is cast once
        return (*first, *(kernels[-1] for kernels in others))

    def weight_gradients(self, shard: Shard) -> tuple[Kernel, ...]:
        """The gradients of its matrices."""
        return tuple(
            kernel
            for columns in self._columns(shard)
            for kernel in linear_weight_gradient(shard, self.features_in, columns)
        )

    def sums(self, shard: Shard) -> bool:
        """Whether its result is a sum of several products, so that no part of it is ready before all are."""
        return self.of_gradient and len(self._columns(shard)) > 1

    def _columns(self, shard: Shard) -> tuple[int, ...]:
        return self.features_out if shard.splits_projections else (sum(self.features_out),)

    def _sum(self, shard: Shard, tokens: int | None) -> tuple[Kernel, ...]:
        """Of n gradients n - 1 are read once more by the pass that follows, or each is added by a pass of its own."""
        if not self.sums(shard):
            return ()
        tensor = shard.width * (shard.tokens if tokens is None else tokens) * self.features_in
        passes = len(self.features_out) - 1
        if shard.compiled:
            return (memory_pass(passes * tensor, dtype=shard.recipe.activations),)
        return (memory_pass(3 * tensor, dtype=shard.recipe.activations),) * passes
