"""Replicas: the ranks that hold the same weights, and how they divide them."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.layers.block import Block
from clustersim.workload.matrix import Matrix
from clustersim.workload.sharding.sharding import Sharding

__all__ = ["Replicas"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Replicas:
    """Dense weights or those of experts.

    Parameters
    ----------
    axis : {"dp", "edp"}
        which: ``edp`` is that of experts
    ranks : int
        that hold the same
    sharding : Sharding
    """

    axis: str
    ranks: int
    sharding: Sharding

    def parameters(self, block: Block) -> int:
        """The block's weights of this kind that are trained, on one rank, when nothing is split."""
        return block.parameters if self.axis == "dp" else block.expert_parameters

    def frozen(self, block: Block) -> int:
        """The block's weights of this kind that are not trained; those of experts count with the dense ones."""
        return block.frozen_parameters if self.axis == "dp" else 0

    def matrices(self, block: Block) -> tuple[Matrix, ...]:
        """Those of its weights of this kind that are matrices."""
        return block.matrices if self.axis == "dp" else block.expert_matrices

    @property
    def in_passes(self) -> bool:
        """Gradients are reduced layer by layer inside the passes, not in buckets behind them."""
        return self.sharding.each_micro_batch or self.sharding.weights > 1

    @property
    def pads(self) -> bool:
        """Buffers are padded so that every rank has an equal part."""
        return max(self.sharding.weights, self.sharding.gradients, self.sharding.optimizer) > 1
