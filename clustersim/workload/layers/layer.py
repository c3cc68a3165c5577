"""The blocks of one layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.cross_attention import cross_attention
from clustersim.workload.layers.experts import experts
from clustersim.workload.layers.latent_attention import latent_attention
from clustersim.workload.layers.linear_attention import linear_attention
from clustersim.workload.layers.mamba import mamba
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.layers.norm import middle_norm, norm, post_norm, residual
from clustersim.workload.layers.parallel import parallel
from clustersim.workload.shard import Shard
from clustersim.workload.sublayer import Sublayer

__all__ = ["SUBLAYERS", "Layers"]

SUBLAYERS: Mapping[Sublayer, Callable[[Shard], Block]] = {
    "attention": attention,
    "cross_attention": cross_attention,
    "latent_attention": latent_attention,
    "linear_attention": linear_attention,
    "mamba": mamba,
    "mlp": mlp,
    "experts": experts,
}
"""What writes the block of each sublayer."""


class Layers:
    """The layers of a model on one rank; equal layers are the same objects.

    Parameters
    ----------
    shard : Shard
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._known: dict[tuple[tuple[Sublayer, ...], int | None], list[Block]] = {}

    def __getitem__(self, index: int) -> list[Block]:
        """Blocks of layer ``index``, counted from 0."""
        model = self._shard.model
        return self.of(model.layer(index), model.window_at(index))

    def of(self, sublayers: tuple[Sublayer, ...], window: int | None = None) -> list[Block]:
        """Blocks of a layer of these sublayers."""
        if (sublayers, window) not in self._known:
            self._known[sublayers, window] = _layer(replace(self._shard, window=window), sublayers)
        return self._known[sublayers, window]


def _layer(shard: Shard, sublayers: tuple[Sublayer, ...]) -> list[Block]:
    """A norm before each sublayer, the residual added after it and read by the next norm.

    Where the published model norms after the addition (BERT) there are as many norms and additions, in another order.
    """
    if shard.model.parallel_residual:
        first, second = sublayers
        return parallel(shard, SUBLAYERS[first](shard), SUBLAYERS[second](shard))
    found = [norm(shard)]
    for number, name in enumerate(sublayers):
        found += [middle_norm(shard)] if number else []
        found.append(SUBLAYERS[name](shard))
        found += [post_norm(shard)] if shard.model.post_norms else []
    return [*found, residual(shard)]
