"""The blocks of one chunk of the model, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.embedding import embedding
from clustersim.workload.layers.experts import experts
from clustersim.workload.layers.head import head
from clustersim.workload.layers.latent_attention import latent_attention
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.layers.mtp import mtp_embedding, mtp_input
from clustersim.workload.layers.norm import middle_norm, norm, post_norm, residual
from clustersim.workload.layers.parallel import parallel
from clustersim.workload.shard import Shard
from clustersim.workload.stages import Chunk
from clustersim.workload.sublayer import Sublayer

__all__ = ["SUBLAYERS", "Placed", "blocks"]

SUBLAYERS: Mapping[Sublayer, Callable[[Shard], Block]] = {
    "attention": attention,
    "latent_attention": latent_attention,
    "mlp": mlp,
    "experts": experts,
}
"""What writes the block of each sublayer."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A block and the layer it belongs to, -1 for embedding and head."""

    block: Block
    layer: int


def blocks(shard: Shard, chunk: Chunk, *, tied_here: bool, embedded_here: bool = False) -> tuple[Placed, ...]:
    """The blocks of a chunk in forward order.

    Parameters
    ----------
    shard : Shard
    chunk : Chunk
    tied_here : bool
        embedding and head stand on one stage and share their weights
    embedded_here : bool
        embedding and head stand on one stage
    """
    model = shard.model
    layers: dict[tuple[tuple[Sublayer, ...], int | None], list[Block]] = {}

    def layer(index: int) -> list[Block]:
        """Equal layers are the same objects."""
        sublayers, window = model.layer(index), model.window_at(index)
        if (sublayers, window) not in layers:
            layers[sublayers, window] = _layer(replace(shard, window=window), sublayers)
        return layers[sublayers, window]

    placed: list[Placed] = []
    if chunk.has_embedding:
        placed.append(Placed(embedding(shard), -1))
        if model.embedding_norm:
            placed.append(Placed(norm(shard, kind="embedding norm", produces=True), -1))
    for number in range(chunk.first_layer, chunk.first_layer + chunk.num_layers):
        placed += [Placed(block, number) for block in layer(number)]
    if chunk.has_head:
        placed += _end(shard, tied_here=tied_here)
        for number in range(model.num_layers, model.num_layers + model.mtp):
            here = embedded_here or model.tied_embeddings or number > model.num_layers
            placed += [Placed(mtp_embedding(shard, here=here), -1), Placed(mtp_input(shard), -1)]
            placed += [Placed(block, number) for block in layer(model.num_layers - 1)]
            placed += _end(shard, tied_here=True)
    return tuple(placed)


def _layer(shard: Shard, sublayers: tuple[Sublayer, ...]) -> list[Block]:
    """A norm before each sublayer, the residual added after it and read by the next norm."""
    if shard.model.parallel_residual:
        first, second = sublayers
        return parallel(shard, SUBLAYERS[first](shard), SUBLAYERS[second](shard))
    found = [norm(shard)]
    for number, name in enumerate(sublayers):
        found += [middle_norm(shard)] if number else []
        found.append(SUBLAYERS[name](shard))
        found += [post_norm(shard)] if shard.model.post_norms else []
    return [*found, residual(shard)]


def _end(shard: Shard, *, tied_here: bool) -> list[Placed]:
    """Final norm, head and loss."""
    last = [norm(shard, kind="final norm")] if shard.model.final_norm else []
    return [Placed(block, -1) for block in (*last, head(shard, tied_here=tied_here))]
