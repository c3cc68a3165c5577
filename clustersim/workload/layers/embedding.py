"""The embedding: a look-up of token rows, split over tensor-parallel ranks by vocabulary."""

from __future__ import annotations

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.kernels import (
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
)
from clustersim.workload.layers.piece import serial
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.shard import WIDTH, Shard

__all__ = ["embedding", "embedding_parameters"]


def embedding_parameters(shard: Shard) -> int:
    """Weights of the token embedding on this rank; a tied head on another stage holds the same."""
    return shard.vocab * shard.embedding_dim


def embedding(shard: Shard) -> Block:
    """Tokens, their types and learned positions; each rank looks up its own rows and leaves zeros for the others'.

    The table of relative positions, a column a head, counts here.

    Forward reads and writes R rows, and reads and writes them once more with learned positions or dropout. Backward
    makes a gradient as large as the table, w bytes a weight, fills it with zeros and adds R/t rows to it
    (PyTorch, ``aten/src/ATen/native/cuda/Embedding.cu``, ``embedding_dense_backward``). Where gradients are summed by
    passes of their own, one adds it to the sum, w + 2g bytes; that frameworks whose products add to the sum still need
    such a pass for the table is left out. A model whose embedding is narrower than h projects the rows.
    """
    model, rows, w = shard.model, shard.tokens, shard.width
    narrow = w * rows * shard.embedding_dim
    mask = shard.rows * model.hidden * shard.dropout
    touched = w * (rows // shard.tp) * shard.embedding_dim
    matrices = [Matrix(features_in=shard.vocab, features_out=shard.embedding_dim, hidden=False)]
    forward = [memory_pass(2 * narrow, dtype=shard.recipe.activations)]
    table, gradient = embedding_parameters(shard), WIDTH[shard.gradient_dtype]
    backward = [
        memory_pass(w * table, dtype=shard.recipe.activations),
        memory_pass(narrow + 2 * touched, dtype=shard.recipe.activations),
    ]
    if "gradients" not in shard.fusion:
        backward.append(memory_pass((w + 2 * gradient) * table, dtype="fp32"))
    if model.embedding_dim is not None:
        shape = (model.embedding_dim, model.hidden)
        plain = shard.unquantised
        forward += linear(plain, *shape)
        backward = [*linear_input_gradient(plain, *shape), *linear_weight_gradient(plain, *shape), *backward]
        matrices.append(Matrix(features_in=shape[0], features_out=shape[1], hidden=False))
    if model.positions == "learned" or shard.dropout:
        forward.append(memory_pass(2 * shard.residual_nbytes + mask, dtype=shard.recipe.activations))
    positions = model.parameters_by_part["positions"]
    if model.positions == "relative":
        positions = model.relative_buckets * shard.heads
    everywhere = positions * (model.positions == "learned") + model.token_types * model.hidden
    projection = 0 if model.embedding_dim is None else model.embedding_dim * model.hidden
    return Block(
        kind="embedding",
        forward=serial(Compute(name="embedding forward", kind="embedding", kernels=tuple(forward))),
        backward=serial(Compute(name="embedding backward", kind="embedding", kernels=tuple(backward))),
        parameters=table + positions + model.token_types * model.hidden + projection,
        replicated_parameters=everywhere + projection,
        matrices=tuple(matrices),
        reduces=True,
        produces=True,
        kept=mask + (0 if model.embedding_dim is None else narrow),
        forward_workspace=shard.full_nbytes,
        backward_workspace=w * table,
    )
