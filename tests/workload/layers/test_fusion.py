"""Operators that share a kernel, and operators that do not: bytes of their formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clustersim.hardware.kernel import Kernel
from clustersim.workload.fusion import FUSED, FUSIONS
from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.grouped import grouped
from clustersim.workload.layers.head import loss as loss_of
from clustersim.workload.layers.kernels import linear_weight_gradient
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.layers.norm import middle_norm, norm, residual
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

New = Callable[..., Shard]
LINE_BY_LINE = ("gradients",)
"""Sums of gradients have a test of their own."""


def passes(block: Block, way: str) -> list[Kernel]:
    pieces = getattr(block, way)
    kernels = [kernel for piece in pieces if isinstance(piece.op, Compute) for kernel in piece.op.kernels]
    return [kernel for kernel in kernels if kernel.kind == "memory"]


def nbytes(block: Block, way: str) -> int:
    return sum(kernel.nbytes for kernel in passes(block, way))


def stream(shard: Shard) -> int:
    """Elements of the residual stream."""
    return shard.rows * shard.model.hidden


def test_an_rms_norm_by_operators(llama: Model, new_shard: New) -> None:
    shard = new_shard(llama, fusion=LINE_BY_LINE)
    rows = 8 * shard.rows
    # 28 + 4w forward, 61 + 8w and the sum with what went around (3w) backward, w = 2
    assert nbytes(norm(shard), "forward") == 36 * stream(shard) + 2 * rows
    assert len(passes(norm(shard), "forward")) == 8
    assert nbytes(norm(shard), "backward") == (60 + 8 * 2 + 3 * 2) * stream(shard) + 3 * rows
    assert nbytes(norm(new_shard(llama)), "forward") == 4 * stream(shard)


def test_a_layer_norm_is_always_one_kernel(gpt: Model, new_shard: New) -> None:
    for way in ("forward", "backward"):
        assert passes(norm(new_shard(gpt, fusion=LINE_BY_LINE)), way) == passes(norm(new_shard(gpt)), way)


@pytest.mark.parametrize(("way", "fused", "apart"), [("forward", 3, 5), ("backward", 5, 9)])
def test_a_gate(llama: Model, new_shard: New, way: str, fused: int, apart: int) -> None:
    shard = new_shard(llama, dropout=False)
    each = shard.width * shard.tokens * shard.ffn
    assert nbytes(mlp(shard), way) == fused * each
    assert nbytes(mlp(replace(shard, fusion=LINE_BY_LINE)), way) == apart * each


def test_rotation(llama: Model, new_shard: New) -> None:
    shard = new_shard(llama)
    rotated = shard.width * shard.tokens * (shard.query_features + shard.key_features)
    for way in ("forward", "backward"):
        assert (
            nbytes(attention(replace(shard, fusion=LINE_BY_LINE)), way) - nbytes(attention(shard), way)
            == (10 - 2) * rotated
        )
        assert (
            len(passes(attention(replace(shard, fusion=LINE_BY_LINE)), way)) == len(passes(attention(shard), way)) + 9
        )


def test_dropout_before_the_residual(gpt: Model, new_shard: New) -> None:
    shard = new_shard(gpt, dropout=True)
    apart = replace(shard, fusion=LINE_BY_LINE)
    assert nbytes(residual(apart), "forward") - nbytes(residual(shard), "forward") == 2 * 2 * stream(shard)
    assert len(passes(residual(replace(apart, dropout=False)), "forward")) == 1


def test_a_compiler_joins_residual_and_norm(llama: Model, new_shard: New) -> None:
    shard, compiled = new_shard(llama), new_shard(llama, fusion=tuple(FUSIONS))
    assert (nbytes(middle_norm(shard), "forward"), nbytes(middle_norm(compiled), "forward")) == (
        5 * 2 * stream(shard),
        4 * 2 * stream(shard),
    )
    assert (nbytes(norm(shard), "backward"), nbytes(norm(compiled), "backward")) == (
        8 * 2 * stream(shard),
        6 * 2 * stream(shard),
    )


@pytest.mark.parametrize("dropout", [False, True])
def test_softmax_by_operators(gpt: Model, new_shard: New, dropout: bool) -> None:
    shard = new_shard(gpt, attention="unfused", dropout=dropout)
    scores = shard.micro_batch * shard.heads * shard.seq_len**2
    more = {
        way: nbytes(attention(replace(shard, fusion=(*LINE_BY_LINE, "bias"))), way) - nbytes(attention(shard), way)
        for way in WAYS
    }
    # forward 2w + (w + 4) + (4 + w) in place of 2w, backward (w + 4) + (8 + w) of 3w; dropout the same either way
    assert more == {"forward": (12 - 4 + 4) * scores, "backward": (16 - 6) * scores}
    assert len(passes(attention(replace(shard, fusion=LINE_BY_LINE)), "forward")) == 3 + dropout


WAYS = ("forward", "backward")


@pytest.mark.parametrize(("heads", "seq_len", "takes"), [(8, 128, True), (2, 128, False), (8, 130, False)])
def test_a_shape_that_the_fused_softmax_does_not_take(
    gpt: Model, new_shard: New, heads: int, seq_len: int, takes: bool
) -> None:
    model = replace(gpt, num_heads=heads, num_kv_heads=heads)
    shard = new_shard(model, attention="unfused", micro_batch=1, seq_len=seq_len, dropout=True)
    scores = heads * seq_len**2
    core = {way: sum(k.nbytes for k in passes(attention(shard), way) if k.form == "softmax") for way in WAYS}
    fused = {"forward": (4 + 5) * scores, "backward": (6 + 5) * scores}
    # casts, scale, mask and softmax; dropout is a pass of its own then
    apart = {"forward": (6 + 8 + 8 + 8 + 6) * scores, "backward": (6 + 12 + 8 + 8 + 6) * scores}
    assert core == (fused if takes else apart)


@pytest.mark.parametrize(
    ("loss", "forward", "backward", "kept"), [("parallel", 26, 14, 4), ("operators", 14, 22, 4), ("fused", 4, 4, 2)]
)
def test_losses(llama: Model, new_shard: New, loss: str, forward: int, backward: int, kept: int) -> None:
    shard = new_shard(llama, loss=loss)
    block, logits = loss_of(shard), shard.tokens * shard.vocab
    assert nbytes(block, "forward") == forward * logits
    assert nbytes(block, "backward") == backward * logits
    assert block.kept == kept * logits


def test_a_loss_over_a_split_vocabulary_line_by_line(llama: Model, new_shard: New) -> None:
    shard = new_shard(llama)
    compiled, lines = loss_of(shard), loss_of(replace(shard, fusion=()))
    for way, more, rows in (("forward", 8 + 4, 12), ("backward", 0, 6)):
        of_rows = [kernel for kernel in passes(lines, way) if kernel.count == rows]
        assert [kernel.nbytes for kernel in of_rows] == [8 * shard.tokens]
        assert nbytes(lines, way) - nbytes(compiled, way) - 8 * shard.tokens == more * shard.tokens * shard.vocab
    whole = replace(shard, loss="operators")
    assert loss_of(whole) == loss_of(replace(whole, fusion=()))


def test_less_fusion_is_never_less_traffic(llama: Model, new_shard: New) -> None:
    biased = replace(llama, qkv_bias=True, attention_output_bias=True, mlp_bias=True)
    for name in FUSED:
        less = tuple(other for other in FUSED if other != name)
        whole, part = (new_shard(biased, attention="unfused", dropout=True, fusion=f) for f in (FUSED, less))
        blocks = [(maker(whole), maker(part)) for maker in (norm, middle_norm, residual, mlp, attention, loss_of)]
        traffic = [(nbytes(a, way), nbytes(b, way)) for a, b in blocks for way in WAYS]
        assert all(b >= a for a, b in traffic)
        assert any(b > a for a, b in traffic)


def test_each_logged_loss_is_one_more_by_operators(llama: Model, new_shard: New) -> None:
    shard = new_shard(llama, loss="fused")
    logits = shard.tokens * shard.vocab
    logged = replace(shard, logged_losses=2)
    assert nbytes(loss_of(logged), "forward") - nbytes(loss_of(shard), "forward") == 2 * 14 * logits
    assert passes(loss_of(logged), "backward") == passes(loss_of(shard), "backward")


def test_gradients_of_biases_read_those_of_the_outputs(llama: Model, new_shard: New) -> None:
    """2 bytes a token and feature: 3 h and h in attention, the wide side and h in the MLP, where there are biases."""
    biased = replace(llama, qkv_bias=True, attention_output_bias=True, mlp_bias=True)
    less = tuple(name for name in FUSED if name != "bias")
    whole, apart = new_shard(biased), new_shard(biased, fusion=less)
    for maker, features in ((attention, whole.qkv_features), (mlp, whole.mlp_in_features)):
        more = nbytes(maker(apart), "backward") - nbytes(maker(whole), "backward")
        assert more == 2 * whole.tokens * (features + llama.hidden)
        assert maker(new_shard(llama, fusion=less)) == maker(new_shard(llama))


def test_gradients_that_are_added_by_a_pass_of_their_own(llama: Model, new_shard: New) -> None:
    shard = new_shard(llama)
    apart = replace(shard, fusion=tuple(name for name in FUSED if name != "gradients"))
    (product,) = linear_weight_gradient(shard, 256, 512)
    added, plain = linear_weight_gradient(apart, 256, 512)
    # 8 bytes of fp32 read and written, or 2 written, then 2 read beside the 8
    assert product.nbytes - plain.nbytes == (8 - 2) * 256 * 512
    assert added.nbytes == (2 + 8) * 256 * 512
    assert (product.flops, product.m, product.n, product.k) == (plain.flops, plain.m, plain.n, plain.k)


def test_gradients_of_experts_are_always_added_by_their_products(llama: Model, new_shard: New) -> None:
    shard = new_shard(llama)
    one, other = (grouped(linear_weight_gradient, s, 64, 96, (10, 20)) for s in (shard, replace(shard, fusion=())))
    assert one == other
