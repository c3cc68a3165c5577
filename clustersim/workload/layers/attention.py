"""The attention block: projections, rotary embedding, the attention kernels, output projection."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.bias_gradient import bias_gradient
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.context.passes import core_backward, core_forward, core_workspace
from clustersim.workload.layers.core import Core
from clustersim.workload.layers.kernels import (
    dropout_backward,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.operators import rope_operators
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.product import Product
from clustersim.workload.layers.second_products import SECOND, attention_products
from clustersim.workload.layers.writing import Writing
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

__all__ = ["attention", "attention_kept"]


def attention(shard: Shard) -> Block:
    """Self-attention of one layer.

    Biases are added in the epilogues of the GEMMs; ALiBi and sinks inside the attention kernels. Rotary embedding is
    one pass over what is rotated of queries and keys, where it is fused. Relative positions are a bias on the scores,
    one matrix of s × s a head, which each kernel reads, and whose gradient it writes; the look-up in their table and
    the sum into it are left out. The weight gradient of the q, k, v projection is what may overlap the reduction of the
    input's gradient, as in Megatron-LM.
    """
    model, rows, w = shard.model, shard.tokens, shard.width
    core, kept = _core(shard), attention_kept(shard)
    scores = core.scores_nbytes
    bias = core.bias_nbytes // shard.micro_batch
    across = core_workspace(core)
    return Block(
        kind="attention",
        forward=_forward(shard, core),
        backward=_backward(shard, core),
        parts=(
            norm_part(shard, kept),
            Part(
                name=SECOND,
                op=Compute(
                    name="attention products forward",
                    kind="attention",
                    kernels=(*attention_products(shard), *_between(shard, passes=2)),
                ),
                kept=kept_nbytes(kept, SECOND),
            ),
            Part(name="core", op=core_forward(core), kept=kept_nbytes(kept, "core")),
        ),
        parameters=_parameters(shard),
        replicated_parameters=model.attention_output_bias * model.hidden + _qk_norm_parameters(shard),
        matrices=(
            Matrix(features_in=model.hidden, features_out=shard.query_features),
            Matrix(features_in=model.hidden, features_out=shard.key_features, count=2, joins=True),
            Matrix(features_in=shard.query_features, features_out=model.hidden),
        ),
        gathers=True,
        reduces=True,
        kept=kept_nbytes(kept),
        weight_kept=weight_gradient_nbytes(shard, *_matrices(shard)),
        forward_workspace=shard.full_nbytes + scores + bias + across[0],
        backward_workspace=shard.full_nbytes
        + across[1]
        + w * rows * (shard.query_features + shard.qkv_features)
        + 2 * scores
        + 2 * bias,
    )


def attention_kept(shard: Shard) -> tuple[Kept, ...]:
    """What it keeps; under sequence parallelism its input as this rank's part, which is gathered again."""
    tokens = shard.width * shard.tokens
    block_input = shard.recipe.activation_operand.nbytes(shard.rows * shard.model.hidden)
    normed = shard.model.qk_norm * (shard.query_features + shard.key_features)
    return (
        Kept("attention input", "attention", block_input, part="norm"),
        Kept("queries, values", "attention", tokens * (shard.query_features + shard.key_features)),
        Kept("keys", "attention", tokens * shard.read_heads * shard.model.head_dim, part=SECOND),
        Kept("copies of values", "attention", tokens * _copied_features(shard), part=SECOND),
        Kept("queries, keys before their norm", "attention", tokens * normed),
        *_core(shard).kept("attention"),
    )


def _matrices(shard: Shard) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of queries, keys and values, and of the output, as (features in, features out)."""
    return (shard.model.hidden, shard.qkv_features), (shard.query_features, shard.model.hidden)


def _products(shard: Shard, *, of_gradient: bool = False) -> tuple[Product, Product]:
    """Of queries, keys and values, and of the output."""
    inward = (shard.query_features, shard.key_features, shard.key_features)
    return (
        Product(features_in=shard.model.hidden, features_out=inward, of_gradient=of_gradient, gathered=not of_gradient),
        Product(
            features_in=shard.query_features,
            features_out=(shard.model.hidden,),
            of_gradient=of_gradient,
            gathered=of_gradient,
        ),
    )


def _forward(shard: Shard, core: Core) -> tuple[Piece, ...]:
    (qkv, out), writing, name = _products(shard), Writing("attention"), "attention forward"
    writing.product(name, shard, qkv)
    for kernel in _between(shard, passes=2):
        writing.kernels(name, kernel)
    writing.part(core_forward(core))
    writing.product(name, shard, out)
    return writing.pieces()


def _backward(shard: Shard, core: Core) -> tuple[Piece, ...]:
    (qkv, out), writing, name = _products(shard, of_gradient=True), Writing("attention"), "attention backward"
    weights = "attention weight gradient"
    for kernel in dropout_backward(shard):
        writing.kernels(name, kernel)
    writing.product(name, shard, out)
    summed = bias_gradient(shard, shard.model.attention_output_bias * shard.model.hidden, tokens=shard.rows)
    writing.kernels(weights, *out.weight_gradients(shard), *summed, weight=True)
    writing.part(core_backward(core))
    for kernel in _between(shard, passes=3):
        writing.kernels(name, kernel)
    writing.product(name, shard, qkv)
    summed = bias_gradient(shard, shard.model.qkv_bias * shard.qkv_features, tokens=shard.tokens)
    writing.kernels(weights, *qkv.weight_gradients(shard), *summed, weight=True)
    return writing.pieces()


def _parameters(shard: Shard) -> int:
    model = shard.model
    return (
        (model.hidden + model.qkv_bias) * shard.qkv_features
        + (shard.query_features + model.attention_output_bias) * model.hidden
        + _qk_norm_parameters(shard)
        + model.attention_sinks * shard.heads
    )


def _qk_norm_parameters(shard: Shard) -> int:
    return shard.model.qk_norm * 2 * shard.model.head_dim * (2 if shard.model.norm_bias else 1)


def _position_bias(shard: Shard) -> int:
    """Bytes of the bias of relative positions for all sequences; it is the same for each."""
    scores = shard.micro_batch * shard.heads * shard.seq_len**2
    return (shard.model.positions == "relative") * shard.width * scores


def _between(shard: Shard, *, passes: int) -> tuple[Kernel, ...]:
    """What stands between projection and attention; a norm reads its input again backward, a rotation does not.

    Copying heads reads those that there are and writes those that are read; backward their gradients are summed.
    """
    q_and_k = shard.width * shard.tokens * (shard.query_features + shard.key_features)
    kernels = []
    if shard.model.qk_norm:
        kernels.append(memory_pass(passes * q_and_k, dtype=shard.recipe.activations, form="norm"))
    if shard.model.positions == "rope":
        rotated = round(shard.model.rotary_fraction * q_and_k)
        if "rope" in shard.fusion:
            kernels.append(memory_pass(2 * rotated, dtype=shard.recipe.activations, form="rope"))
        else:
            kernels += rope_operators(shard, rotated // shard.width)
    if shard.read_heads > shard.kv_heads:
        both = 2 * (2 * shard.key_features + _copied_features(shard))
        kernels.append(memory_pass(shard.width * shard.tokens * both, dtype=shard.recipe.activations))
    return tuple(kernels)


def _copied_features(shard: Shard) -> int:
    """Columns of keys that are copies; of values there are as many."""
    return (shard.read_heads - shard.kv_heads) * shard.model.head_dim


def _core(shard: Shard) -> Core:
    return Core.of(shard, shard.masks, bias_nbytes=_position_bias(shard))
