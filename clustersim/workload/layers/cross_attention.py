"""Cross-attention: a decoder's queries meet keys and values of the encoder's output."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.context.local import local_kernels, local_kernels_backward
from clustersim.workload.layers.core import Core
from clustersim.workload.layers.kernels import (
    dropout_backward,
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.writing import Writing
from clustersim.workload.mask import Mask
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.passes.tensor_parallel import gather, reduction
from clustersim.workload.shard import Shard

__all__ = ["cross_attention", "cross_attention_kept"]

_KIND = "attention"
_NAME = "cross attention"


def cross_attention(shard: Shard) -> Block:
    """Cross-attention of one decoder layer to as many tokens as the decoder reads, all of which every token sees.

    The encoder's output is held once for all layers. Under sequence parallelism each layer gathers it for its keys and
    values, and again for the gradient of their matrix; its gradient is reduced over ranks layer by layer and added up.
    """
    core, kept = _core(shard), cross_attention_kept(shard)
    query, keys, out = _matrices(shard)
    again = Compute(name=f"{_NAME} core forward", kind=_KIND, kernels=local_kernels(core))
    encoded = shard.full_nbytes * shard.sequence_parallel
    model = shard.model
    return Block(
        kind=_NAME,
        forward=_forward(shard, core),
        backward=_backward(shard, core),
        parts=(
            Part(name="core", op=again, kept=kept_nbytes(kept, "core")),
            norm_part(shard, kept),
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
        kept=kept_nbytes(kept),
        weight_kept=weight_gradient_nbytes(shard, query, keys, out),
        forward_workspace=shard.full_nbytes + encoded + core.scores_nbytes,
        backward_workspace=2 * shard.full_nbytes
        + encoded
        + core.queries_nbytes
        + core.kv_nbytes
        + 2 * core.scores_nbytes,
    )


def cross_attention_kept(shard: Shard) -> tuple[Kept, ...]:
    """What it keeps; the encoder's output is held elsewhere, once for all layers."""
    core = _core(shard)
    block_input = shard.recipe.activation_operand.nbytes(shard.rows * shard.model.hidden)
    return (
        Kept("cross attention input", _NAME, block_input, part="norm"),
        Kept("queries, keys, values", _NAME, core.queries_nbytes + core.kv_nbytes),
        *core.kept(_NAME),
    )


def _core(shard: Shard) -> Core:
    """Every token sees all of as many tokens of the encoder."""
    return Core.of(shard, (Mask(documents=(shard.seq_len,), causal=False),) * shard.micro_batch)


def _matrices(shard: Shard) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Of queries, of keys and values, and of the output, as (features in, features out)."""
    hidden = shard.model.hidden
    return (hidden, shard.query_features), (hidden, 2 * shard.key_features), (shard.query_features, hidden)


def _forward(shard: Shard, core: Core) -> tuple[Piece, ...]:
    query, keys, out = _matrices(shard)
    writing, name = Writing(_KIND), f"{_NAME} forward"
    here: tuple[int, ...] = ()
    if shard.sequence_parallel:
        here = (writing.collective(gather(shard, "encoder output"), after=()),)
    writing.kernels(name, *linear(shard, *query), after=())
    last = (*linear(shard, *keys), *local_kernels(core), *linear(shard, *out))
    writing.kernels(name, *last, after=here or None)
    return writing.pieces()


def _backward(shard: Shard, core: Core) -> tuple[Piece, ...]:
    query, keys, out = _matrices(shard)
    writing, name, weights = Writing(_KIND), f"{_NAME} backward", f"{_NAME} weight gradient"
    again: tuple[int, ...] = ()
    if shard.sequence_parallel:
        again = (writing.collective(gather(shard, "encoder output again"), after=()),)
    writing.kernels(name, *dropout_backward(shard), *linear_input_gradient(shard, *out), after=())
    writing.kernels(weights, *linear_weight_gradient(shard, *out), weight=True)
    inner = writing.kernels(name, *local_kernels_backward(core), *linear_input_gradient(shard, *keys))
    summed = inner
    if shard.tp > 1:
        summed = writing.collective(reduction(shard, "encoder output gradient"), after=(inner,))
    writing.kernels(weights, *linear_weight_gradient(shard, *keys), after=(inner, *again), weight=True)
    writing.kernels(name, *linear_input_gradient(shard, *query), after=(inner,))
    writing.kernels(name, _added(shard), after=(summed,))
    writing.kernels(weights, *linear_weight_gradient(shard, *query), weight=True)
    return writing.pieces()


def _added(shard: Shard) -> Kernel:
    """The gradient of the encoder's output so far, and this layer's."""
    return memory_pass(3 * shard.residual_nbytes, dtype=shard.recipe.activations)
