"""Cross-attention: a decoder's queries meet keys and values of the encoder's output."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.activations import Kept
from clustersim.workload.layers.attend import Attend
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.kernels import (
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.writing import Writing
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.passes.tensor_parallel import gather, reduction
from clustersim.workload.shard import Shard

__all__ = ["cross_attention"]

_KIND = "attention"
_NAME = "cross attention"


def cross_attention(shard: Shard) -> Block:
    """Cross-attention of one decoder layer to as many tokens as the decoder reads, all of which every token sees.

    The encoder's output is held once for all layers. Under sequence parallelism each layer gathers it for its keys and
    values, and again for the gradient of their matrix; its gradient is reduced over ranks layer by layer and added up.
    """
    attend = _attend(shard)
    query, keys, out = _matrices(shard)
    kept = _kept(shard, attend)
    core = Compute(name=f"{_NAME} core forward", kind=_KIND, kernels=attend.forward())
    encoded = shard.full_nbytes * shard.sequence_parallel
    model = shard.model
    return Block(
        kind=_NAME,
        forward=_forward(shard, attend),
        backward=_backward(shard, attend),
        parts=(
            Part(name="core", op=core, kept=sum(tensor.nbytes for tensor in kept if tensor.part == "core")),
            norm_part(shard),
        ),
        parameters=sum(rows * columns for rows, columns in (query, keys, out))
        + model.qkv_bias * (query[1] + keys[1])
        + model.attention_output_bias * model.hidden,
        replicated_parameters=model.attention_output_bias * model.hidden,
        matrices=(
            Matrix(features_in=query[0], features_out=query[1]),
            Matrix(features_in=keys[0], features_out=keys[1] // 2, count=2),
            Matrix(features_in=out[0], features_out=out[1]),
        ),
        gathers=True,
        reduces=True,
        kept=sum(tensor.nbytes for tensor in kept),
        weight_kept=weight_gradient_nbytes(shard, query, keys, out),
        forward_workspace=shard.full_nbytes + encoded + attend.scores_nbytes,
        backward_workspace=2 * shard.full_nbytes
        + encoded
        + attend.queries_nbytes
        + attend.keys_nbytes
        + 2 * attend.scores_nbytes,
    )


def _attend(shard: Shard) -> Attend:
    return Attend(
        shard=shard,
        kv_heads=shard.kv_heads,
        key_dim=shard.model.head_dim,
        value_dim=shard.model.head_dim,
        keys=shard.seq_len,
        pairs2=2 * shard.micro_batch * shard.seq_len**2,
    )


def _matrices(shard: Shard) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Of queries, of keys and values, and of the output, as (features in, features out)."""
    hidden = shard.model.hidden
    return (hidden, shard.query_features), (hidden, 2 * shard.key_features), (shard.query_features, hidden)


def _kept(shard: Shard, attend: Attend) -> tuple[Kept, ...]:
    block_input = shard.recipe.activation_operand.nbytes(shard.rows * shard.model.hidden)
    tensors = (
        Kept("cross attention input", _NAME, block_input, part="norm"),
        Kept("queries, keys, values", _NAME, attend.queries_nbytes + attend.keys_nbytes),
        *attend.kept(_NAME),
    )
    return tuple(tensor for tensor in tensors if tensor.nbytes)


def _forward(shard: Shard, attend: Attend) -> tuple[Piece, ...]:
    query, keys, out = _matrices(shard)
    writing, name = Writing(_KIND), f"{_NAME} forward"
    here: tuple[int, ...] = ()
    if shard.sequence_parallel:
        here = (writing.collective(gather(shard, "encoder output"), after=()),)
    writing.kernels(name, *linear(shard, *query), after=())
    last = (*linear(shard, *keys), *attend.forward(), *linear(shard, *out))
    writing.kernels(name, *last, after=here or None)
    return writing.pieces()


def _backward(shard: Shard, attend: Attend) -> tuple[Piece, ...]:
    query, keys, out = _matrices(shard)
    writing, name, weights = Writing(_KIND), f"{_NAME} backward", f"{_NAME} weight gradient"
    again: tuple[int, ...] = ()
    if shard.sequence_parallel:
        again = (writing.collective(gather(shard, "encoder output again"), after=()),)
    writing.kernels(name, *attend.mask_backward(), *linear_input_gradient(shard, *out), after=())
    writing.kernels(weights, *linear_weight_gradient(shard, *out), weight=True)
    core = writing.kernels(name, *attend.backward(), *linear_input_gradient(shard, *keys))
    summed = core
    if shard.tp > 1:
        summed = writing.collective(reduction(shard, "encoder output gradient"), after=(core,))
    writing.kernels(weights, *linear_weight_gradient(shard, *keys), after=(core, *again), weight=True)
    writing.kernels(name, *linear_input_gradient(shard, *query), after=(core,))
    writing.kernels(name, _added(shard), after=(summed,))
    writing.kernels(weights, *linear_weight_gradient(shard, *query), weight=True)
    return writing.pieces()


def _added(shard: Shard) -> Kernel:
    """The gradient of the encoder's output so far, and this layer's."""
    return memory_pass(3 * shard.residual_nbytes, dtype=shard.recipe.activations)
