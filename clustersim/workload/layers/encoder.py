"""The encoder in front of a decoder: its layers, and the embedding that both share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.embedding import embedding, embedding_parameters
from clustersim.workload.layers.layer import Layers
from clustersim.workload.layers.norm import norm
from clustersim.workload.shard import Shard

__all__ = ["decoder_embedding", "encoder", "holding_encoder_gradient"]


def encoder(shard: Shard) -> Iterator[tuple[Block, int]]:
    """Blocks of the encoder with their layers, -1 for embedding and norm; its output is kept for the decoder.

    Raises
    ------
    ValueError
        when the model has no encoder
    """
    stack = shard.model.encoder_stack
    if stack is None:
        raise ValueError(f"encoder: None must be given for the encoder of {shard.model.name}")
    own = replace(shard, model=replace(stack, vocab=shard.model.vocab))
    yield embedding(own), -1
    if stack.embedding_norm:
        yield norm(own, kind="embedding norm", produces=True), -1
    layers = Layers(own)
    for number in range(stack.num_layers):
        for block in layers[number]:
            yield block, number
    if stack.final_norm:
        yield replace(norm(own, kind="encoder norm"), kept=shard.residual_nbytes), -1


def decoder_embedding(shard: Shard) -> Block:
    """A second look-up in the encoder's embedding; only what gives positions is its own."""
    plain = embedding(shard)
    return replace(
        plain,
        kind="decoder embedding",
        parameters=plain.parameters - embedding_parameters(shard),
        replicated_parameters=0,
        matrices=plain.matrices[1:],
    )


def holding_encoder_gradient(shard: Shard, block: Block) -> Block:
    """A decoder's block, with the gradient of the encoder's output, which is summed up over the decoder's layers."""
    return replace(block, backward_workspace=block.backward_workspace + shard.residual_nbytes)
