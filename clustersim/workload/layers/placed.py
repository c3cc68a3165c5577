"""The blocks of one chunk of the model, in order."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.embedding import embedding
from clustersim.workload.layers.head import head
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.layers.norm import middle_norm, norm, residual
from clustersim.workload.shard import Shard
from clustersim.workload.stages import Chunk

__all__ = ["Placed", "blocks"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A block and the layer it belongs to, -1 for embedding and head."""

    block: Block
    layer: int


def blocks(shard: Shard, chunk: Chunk, *, tied_here: bool) -> tuple[Placed, ...]:
    """The blocks of a chunk in forward order.

    Parameters
    ----------
    shard : Shard
    chunk : Chunk
    tied_here : bool
        embedding and head stand on one stage and share their weights
    """
    layer = [norm(shard), attention(shard), middle_norm(shard), mlp(shard), residual(shard)]
    placed: list[Placed] = []
    if chunk.has_embedding:
        placed.append(Placed(embedding(shard), -1))
        if shard.model.embedding_norm:
            placed.append(Placed(norm(shard, kind="embedding norm", produces=True), -1))
    for number in range(chunk.first_layer, chunk.first_layer + chunk.num_layers):
        placed += [Placed(block, number) for block in layer]
    if chunk.has_head:
        if shard.model.final_norm:
            placed.append(Placed(norm(shard, kind="final norm"), -1))
        placed.append(Placed(head(shard, tied_here=tied_here), -1))
    return tuple(placed)
