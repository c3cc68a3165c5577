"""The attention block: projections, rotary embedding, the attention kernels, output projection."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.activations import kept_by_block
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.kernels import (
    gemm,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.product import Product
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

__all__ = ["attention"]


def attention(shard: Shard) -> Block:
    """Self-attention of one layer.

    Biases are added in the epilogues of the GEMMs; ALiBi and sinks inside the attention kernels. Rotary embedding is
    one pass over what is rotated of queries and keys. Relative positions are a bias on the scores, one matrix of s × s
    a head, which each kernel reads, and whose gradient it writes; the look-up in their table and the sum into it are
    left out. The weight gradient of the q, k, v projection is what may overlap the reduction of the input's gradient,
    as in Megatron-LM.
    """
    model, rows, w = shard.model, shard.tokens, shard.width
    qkv = (model.hidden, shard.qkv_features)
    out = (shard.query_features, model.hidden)
    core_kept = kept_by_block(shard, "attention", part="core")
    scores = w * _scores(shard) if shard.attention == "unfused" else 0
    bias = _position_bias(shard) // shard.micro_batch
    return Block(
        kind="attention",
        forward=(
            _product("attention forward", shard, qkv),
            _piece("attention forward", *_between(shard, passes=2), *_core_forward(shard)),
            _product("attention forward", shard, out),
        ),
        backward=(
            *(_piece("attention backward", mask) for mask in _mask_backward(shard)),
            _product("attention backward", shard, out, of_gradient=True),
            _weights(*linear_weight_gradient(shard, *out)),
            _piece("attention backward", *_core_backward(shard), *_between(shard, passes=3)),
            _product("attention backward", shard, qkv, of_gradient=True),
            _weights(*linear_weight_gradient(shard, *qkv)),
        ),
        parts=(
            Part(name="core", op=_compute("attention core forward", *_core_forward(shard)), kept=core_kept),
            norm_part(shard),
        ),
        parameters=_parameters(shard),
        replicated_parameters=model.attention_output_bias * model.hidden + _qk_norm_parameters(shard),
        matrices=(
            Matrix(features_in=model.hidden, features_out=shard.query_features),
            Matrix(features_in=model.hidden, features_out=shard.key_features, count=2),
            Matrix(features_in=shard.query_features, features_out=model.hidden),
        ),
        gathers=True,
        reduces=True,
        kept=kept_by_block(shard, "attention"),
        weight_kept=weight_gradient_nbytes(shard, qkv, out),
        forward_workspace=shard.full_nbytes + scores + bias,
        backward_workspace=shard.full_nbytes
        + w * rows * (shard.query_features + shard.qkv_features)
        + 2 * scores
        + 2 * bias,
    )


def _compute(name: str, *kernels: Kernel) -> Compute:
    return Compute(name=name, kind="attention", kernels=kernels)


def _piece(name: str, *kernels: Kernel) -> Piece:
    return Piece(op=_compute(name, *kernels))


def _product(name: str, shard: Shard, features: tuple[int, int], *, of_gradient: bool = False) -> Piece:
    product = Product(features_in=features[0], features_out=features[1], of_gradient=of_gradient)
    return Piece(op=_compute(name, *product.kernels(shard)), product=product)


def _weights(*kernels: Kernel) -> Piece:
    return Piece(op=_compute("attention weight gradient", *kernels), weight=True)


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


def _scores(shard: Shard) -> int:
    """Elements of the score matrices of this rank's heads, the whole square."""
    return shard.micro_batch * shard.heads * shard.seq_len**2


def _position_bias(shard: Shard) -> int:
    """Bytes of the bias of relative positions for all sequences; it is the same for each."""
    return (shard.model.positions == "relative") * shard.width * _scores(shard)


def _between(shard: Shard, *, passes: int) -> tuple[Kernel, ...]:
    """What stands between projection and attention; a norm reads its input again backward, a rotation does not."""
    q_and_k = shard.width * shard.tokens * (shard.query_features + shard.key_features)
    kernels = []
    if shard.model.qk_norm:
        kernels.append(memory_pass(passes * q_and_k, dtype=shard.recipe.activations))
    if shard.model.positions == "rope":
        rotated = round(shard.model.rotary_fraction * q_and_k)
        kernels.append(memory_pass(2 * rotated, dtype=shard.recipe.activations))
    return tuple(kernels)


def _mask_backward(shard: Shard) -> tuple[Kernel, ...]:
    """The output's gradient through the mask of dropout, over the tokens that this rank holds."""
    elements = shard.rows * shard.model.hidden
    return (memory_pass((2 * shard.width + 1) * elements, dtype=shard.recipe.activations),) if shard.dropout else ()


def _core_forward(shard: Shard) -> tuple[Kernel, ...]:
    """Scores, softmax and context.

    Flash: 2 products over the p pairs that the mask lets through, 4·b·a·p·d FLOP; reads q, k, v, writes the output and
    4 bytes a row. Unfused: both products over the whole square, and a fused scale, mask and softmax pass.
    """
    b, a, s, d = shard.micro_batch, shard.heads, shard.seq_len, shard.model.head_dim
    if shard.attention == "flash":
        nbytes = shard.width * shard.tokens * (shard.qkv_features + shard.query_features) + 4 * shard.tokens * a
        return (_flash(shard, flops=2 * b * a * shard.pairs2 * d, nbytes=nbytes + _position_bias(shard)),)
    passes = 2 * shard.width + shard.dropout * (2 * shard.width + 1)
    return (
        gemm(s, s, d, batch=b * a, dtype=shard.recipe.products),
        memory_pass(passes * _scores(shard) + _position_bias(shard), dtype=shard.recipe.activations),
        gemm(s, d, s, batch=b * a, dtype=shard.recipe.products),
    )


def _core_backward(shard: Shard) -> tuple[Kernel, ...]:
    """Gradients of q, k and v.

    Flash: 5 products instead of 2, since the scores are computed again, so 10·b·a·p·d FLOP; reads q, k, v, the output,
    its gradient and the row statistics, writes three gradients. Unfused: 4 products.

    References
    ----------
    Dao, FlashAttention-2, 2023, section 4.1: backward counted as 2.5 times forward.
    """
    b, a, s, d = shard.micro_batch, shard.heads, shard.seq_len, shard.model.head_dim
    if shard.attention == "flash":
        nbytes = 2 * shard.width * shard.tokens * (shard.qkv_features + shard.query_features) + 4 * shard.tokens * a
        return (_flash(shard, flops=5 * b * a * shard.pairs2 * d, nbytes=nbytes + 2 * _position_bias(shard)),)
    passes = 3 * shard.width + shard.dropout * (2 * shard.width + 1)
    return (
        gemm(s, s, d, batch=b * a, dtype=shard.recipe.products),
        gemm(s, d, s, batch=b * a, dtype=shard.recipe.products),
        memory_pass(passes * _scores(shard) + _position_bias(shard), dtype=shard.recipe.activations),
        gemm(s, d, s, batch=b * a, dtype=shard.recipe.products),
        gemm(s, d, s, batch=b * a, dtype=shard.recipe.products),
    )


def _flash(shard: Shard, *, flops: int, nbytes: int) -> Kernel:
    """One fused kernel: m queries, n keys that one of them may see, heads of width k, a batch of b·a."""
    return Kernel(
        kind="attention",
        dtype=shard.recipe.products,
        flops=flops,
        nbytes=nbytes,
        m=shard.seq_len,
        n=min(shard.seq_len, shard.window or shard.seq_len),
        k=shard.model.head_dim,
        batch=shard.micro_batch * shard.heads,
    )
