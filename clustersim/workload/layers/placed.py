"""The blocks of one chunk of the model, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from clustersim.workload.layers.adapters import adapted
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.contrastive import contrastive_loss
from clustersim.workload.layers.dense import classes, features, head_transform, patches, pooler
from clustersim.workload.layers.embedding import embedding
from clustersim.workload.layers.encoder import decoder_embedding, encoder, holding_encoder_gradient
from clustersim.workload.layers.head import head, loss
from clustersim.workload.layers.layer import Layers
from clustersim.workload.layers.mtp import met_again, mtp_embedding, mtp_input, mtp_layers
from clustersim.workload.layers.norm import norm
from clustersim.workload.shard import Shard
from clustersim.workload.stages import Chunk

__all__ = ["Placed", "blocks"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A block in its place.

    Parameters
    ----------
    block : Block
    layer : int
        that it belongs to, -1 for what stands before and behind the layers
    residual_nbytes : int
        the residual stream there, on this rank [B]
    """

    block: Block
    layer: int
    residual_nbytes: int


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
    if shard.model.tower is not None:
        return _two_towers(shard, chunk)
    return _decoder(shard, chunk, tied_here=tied_here, embedded_here=embedded_here)


def _decoder(shard: Shard, chunk: Chunk, *, tied_here: bool, embedded_here: bool) -> tuple[Placed, ...]:
    """A part of one stack, with what stands before and behind it."""
    model, layers = shard.model, Layers(shard)
    placed = list(_outside(shard, _front(shard))) if chunk.has_embedding else []
    for number in range(chunk.first_layer, chunk.first_layer + chunk.num_layers):
        placed += _inside(shard, layers[number], number)
    if chunk.has_head:
        placed += _outside(shard, _end(shard, tied_here=tied_here))
        further = shard.at_layer(model.num_layers).of_module("mtp")
        modules = Layers(further)
        for number in range(model.num_layers, model.num_layers + model.mtp):
            here = embedded_here or model.tied_embeddings or number > model.num_layers
            parts = [[mtp_input(further)], mtp_layers(modules, model), [*_end(shard, tied_here=True)]]
            if model.mtp_repeated and number > model.num_layers:
                parts = [[met_again(block) for block in part] for part in parts]
            front, inside, end = parts
            placed += _outside(shard, (mtp_embedding(shard, here=here), *front))
            placed += _inside(shard, inside, number)
            placed += _outside(shard, end)
    return tuple(placed)


def _adapted(shard: Shard, placed: tuple[Placed, ...]) -> tuple[Placed, ...]:
    """All weights frozen, adapters beside their targets; equal blocks stay the same objects."""
    known: dict[int, Block] = {}
    for p in placed:
        if id(p.block) not in known:
            known[id(p.block)] = adapted(shard, p.block)
    return tuple(replace(p, block=known[id(p.block)]) for p in placed)


def _encoder_decoder(shard: Shard, chunk: Chunk, *, tied_here: bool) -> tuple[Placed, ...]:
    """All of an encoder-decoder, whose decoder's layers count on from the encoder's."""
    placed = [Placed(block, number, shard.residual_nbytes) for block, number in encoder(shard)]
    first = 1 + max(p.layer for p in placed)
    layers = Layers(shard)
    decoder = list(_outside(shard, [decoder_embedding(shard)]))
    if shard.model.embedding_norm:
        decoder += _outside(shard, [norm(shard, kind="embedding norm", produces=True)])
    for number in range(chunk.num_layers):
        decoder += _inside(shard, layers[number], first + number)
    decoder += _outside(shard, _end(shard, tied_here=tied_here))
    return (*placed, *(replace(p, block=holding_encoder_gradient(shard, p.block)) for p in decoder))


def _two_towers(shard: Shard, chunk: Chunk) -> tuple[Placed, ...]:
    """Text, then images, whose layers count on, then the loss that compares them."""
    tower, stack = shard.model.tower, shard.model.tower_stack
    if tower is None or stack is None:
        raise ValueError(f"tower: None must be given for the towers of {shard.model.name}")
    images = replace(shard, model=stack, seq_len=stack.max_seq_len)
    placed: list[Placed] = []
    for own, num_layers in ((shard, chunk.num_layers), (images, stack.num_layers)):
        first, layers = 1 + max((p.layer for p in placed), default=-1), Layers(own)
        placed += _outside(own, _front(own))
        for number in range(num_layers):
            placed += _inside(own, layers[number], first + number)
        placed += _outside(own, [*_end(own, tied_here=False), features(own, tower.projection)])
    return (*placed, *_outside(shard, [contrastive_loss(shard)]))


def _inside(shard: Shard, blocks: Iterable[Block], layer: int) -> Iterator[Placed]:
    return (Placed(block, layer, shard.residual_nbytes) for block in blocks)


def _outside(shard: Shard, blocks: Iterable[Block]) -> Iterator[Placed]:
    return _inside(shard, blocks, -1)


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
        yield loss(shard)
    if model.pooler:
        yield pooler(shard)
    if model.num_classes:
        yield classes(shard)
