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
from clustersim.workload.module_dtypes import in_dtype
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
        self._known: dict[tuple[tuple[Sublayer, ...], int | None, str], list[Block]] = {}

    def __getitem__(self, index: int) -> list[Block]:
        """Blocks of layer ``index``, counted from 0."""
        model = self._shard.model
        return self._of(self._shard.at_layer(index), model.layer(index), model.window_at(index))

    def of(self, sublayers: tuple[Sublayer, ...]) -> list[Block]:
        """Blocks of a layer of these sublayers, which is none of the model's numbered ones."""
        return self._of(self._shard, sublayers, None)

    def _of(self, shard: Shard, sublayers: tuple[Sublayer, ...], window: int | None) -> list[Block]:
        key = sublayers, window, shard.products_as
        if key not in self._known:
            self._known[key] = _layer(replace(shard, window=window), sublayers)
        return self._known[key]


_MODULE: Mapping[Sublayer, str] = {
    "attention": "attention",
    "cross_attention": "attention",
    "latent_attention": "attention",
    "linear_attention": "attention",
    "mlp": "mlp",
}
"""Sublayers that are one module; Mamba mixers and experts ask for their own."""


def _block(shard: Shard, name: Sublayer) -> Block:
    """The block of a sublayer in the number formats of its module."""
    own = shard.of_module(_MODULE[name]) if name in _MODULE else shard
    block = SUBLAYERS[name](own)
    if not own.products_as:
        return block
    return replace(
        block,
        dtype=own.products_as,
        matrices=in_dtype(block.matrices, own.products_as),
        expert_matrices=in_dtype(block.expert_matrices, own.products_as),
    )


def _layer(shard: Shard, sublayers: tuple[Sublayer, ...]) -> list[Block]:
    """A norm before each sublayer, the residual added after it and read by the next norm.

    Where the published model norms after the addition (BERT) there are as many norms and additions, in another order.
    """
    if shard.model.parallel_residual:
        first, second = sublayers
        return parallel(shard, _block(shard, first), _block(shard, second))
    found = [norm(shard)]
    for number, name in enumerate(sublayers):
        found += [middle_norm(shard)] if number else []
        found.append(_block(shard, name))
        found += [post_norm(shard)] if shard.model.post_norms else []
    return [*found, residual(shard)]
