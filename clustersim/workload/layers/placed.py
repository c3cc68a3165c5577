"""The blocks of one chunk of the model, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clustersim.workload.layers.adapters import adapted
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.dense import classes, head_transform, patches, pooler
from clustersim.workload.layers.embedding import embedding
from clustersim.workload.layers.encoder import decoder_embedding, encoder, holding_encoder_gradient
from clustersim.workload.layers.head import head
from clustersim.workload.layers.layer import Layers
from clustersim.workload.layers.mtp import mtp_embedding, mtp_input
from clustersim.workload.layers.norm import norm
from clustersim.workload.shard import Shard
from clustersim.workload.stages import Chunk

__all__ = ["Placed", "blocks"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A block and the layer it belongs to, -1 for what stands before and behind the layers."""

    block: Block
    layer: int


def blocks(shard: Shard, chunk: Chunk, *, tied_here: bool, embedded_here: bool = False) -> tuple[Placed, ...]:
    """The blocks of a chunk in forward order.

    Parameters
    ----------
    shard : Shard
    chunk : Chunk
        of the model, or of its decoder, which an encoder stands before
    tied_here : bool
        embedding and head stand on one stage and share their weights
    embedded_here : bool
        embedding and head stand on one stage
    """
    if shard.model.adapters is not None:
        return _adapted(shard, _decoder(shard, chunk, tied_here=tied_here, embedded_here=embedded_here))
    if shard.model.encoder is not None:
        return _encoder_decoder(shard, chunk, tied_here=tied_here)
    return _decoder(shard, chunk, tied_here=tied_here, embedded_here=embedded_here)


def _decoder(shard: Shard, chunk: Chunk, *, tied_here: bool, embedded_here: bool) -> tuple[Placed, ...]:
    """A part of one stack, with what stands before and behind it."""
    model = shard.model
    layers = Layers(shard)
    placed = [Placed(block, -1) for block in _front(shard)] if chunk.has_embedding else []
    for number in range(chunk.first_layer, chunk.first_layer + chunk.num_layers):
        placed += [Placed(block, number) for block in layers[number]]
    if chunk.has_head:
        placed += [Placed(block, -1) for block in _end(shard, tied_here=tied_here)]
        for number in range(model.num_layers, model.num_layers + model.mtp):
            here = embedded_here or model.tied_embeddings or number > model.num_layers
            placed += [Placed(mtp_embedding(shard, here=here), -1), Placed(mtp_input(shard), -1)]
            placed += [Placed(block, number) for block in layers[model.num_layers - 1]]
            placed += [Placed(block, -1) for block in _end(shard, tied_here=True)]
    return tuple(placed)


def _adapted(shard: Shard, placed: tuple[Placed, ...]) -> tuple[Placed, ...]:
    """All weights frozen, adapters beside their targets; equal blocks stay the same objects."""
    known: dict[int, Block] = {}
    for p in placed:
        if id(p.block) not in known:
            known[id(p.block)] = adapted(shard, p.block)
    return tuple(Placed(known[id(p.block)], p.layer) for p in placed)


def _encoder_decoder(shard: Shard, chunk: Chunk, *, tied_here: bool) -> tuple[Placed, ...]:
    """All of an encoder-decoder, whose decoder's layers count on from the encoder's."""
    placed = [Placed(block, number) for block, number in encoder(shard)]
    first = 1 + max(p.layer for p in placed)
    layers = Layers(shard)
    decoder = [Placed(decoder_embedding(shard), -1)]
    if shard.model.embedding_norm:
        decoder.append(Placed(norm(shard, kind="embedding norm", produces=True), -1))
    for number in range(chunk.num_layers):
        decoder += [Placed(block, first + number) for block in layers[number]]
    decoder += [Placed(block, -1) for block in _end(shard, tied_here=tied_here)]
    return (*placed, *(Placed(holding_encoder_gradient(shard, p.block), p.layer) for p in decoder))


def _front(shard: Shard) -> Iterator[Block]:
    """Embedding or patches, and the norm after it."""
    yield embedding(shard) if shard.model.patches is None else patches(shard)
    if shard.model.embedding_norm:
        yield norm(shard, kind="embedding norm", produces=True)


def _end(shard: Shard, *, tied_here: bool) -> Iterator[Block]:
    """Final norm, heads and losses."""
    model = shard.model
    if model.final_norm:
        yield norm(shard, kind="final norm")
    if model.head_transform:
        yield head_transform(shard)
    if model.head:
        yield head(shard, tied_here=tied_here)
    if model.pooler:
        yield pooler(shard)
    if model.num_classes:
        yield classes(shard)
