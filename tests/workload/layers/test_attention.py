"""The attention block against counts by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard

NewShard = Callable[..., Shard]
Computed = Callable[[Block], tuple[Compute, Compute | None, Compute | None]]
Flops = Callable[[Block], tuple[int, int]]
TOKENS = 2 * 128


def test_flash(llama: Model, new_shard: NewShard, flops: Flops) -> None:
    matrices = 256 * (8 + 2 * 4) * 32 + 8 * 32 * 256
    pair = 2 * 2 * (128 * 128 // 2) * 8 * 32 * 2  # two products over half a square, 8 heads of 32, two sequences
    forward, backward = flops(attention(new_shard(llama)))
    assert forward == 2 * TOKENS * matrices + pair
    assert backward == 4 * TOKENS * matrices + 5 * pair // 2


def test_unfused_multiplies_the_whole_square(llama: Model, new_shard: NewShard, flops: Flops) -> None:
    matrices = 256 * (8 + 2 * 4) * 32 + 8 * 32 * 256
    pair = 2 * 2 * 128 * 128 * 8 * 32 * 2
    forward, backward = flops(attention(new_shard(llama, attention="unfused")))
    assert forward == 2 * TOKENS * matrices + pair
    assert backward == 4 * TOKENS * matrices + 2 * pair


@pytest.mark.parametrize("kind", ["flash", "unfused"])
@pytest.mark.parametrize("t", [2, 4])
def test_ranks_share_the_work(llama: Model, new_shard: NewShard, flops: Flops, kind: str, t: int) -> None:
    whole, part = (flops(attention(new_shard(llama, attention=kind, tp=n))) for n in (1, t))
    assert [t * n for n in part] == list(whole)


def test_keys_and_values_are_repeated_beyond_their_heads(llama: Model, new_shard: NewShard) -> None:
    shard = new_shard(llama, tp=8)
    assert (shard.heads, shard.kv_heads) == (1, 1)
    assert attention(shard).parameters == 256 * 3 * 32 + 32 * 256


def test_dropout_is_drawn_in_the_fused_kernel_alone(gpt: Model, new_shard: NewShard) -> None:
    for kind, drawn in (("flash", {True}), ("unfused", set())):
        block = attention(new_shard(gpt, attention=kind, dropout=True))
        ops = [piece.op for piece in (*block.forward, *block.backward) if isinstance(piece.op, Compute)]
        kernels = [kernel for op in ops for kernel in op.kernels]
        assert {kernel.dropout for kernel in kernels if kernel.kind == "attention"} == drawn
        assert not any(kernel.dropout for kernel in kernels if kernel.kind != "attention")


def test_selective_recomputes_the_core(gpt: Model, new_shard: NewShard) -> None:
    block = attention(new_shard(gpt, attention="unfused", dropout=True))
    (core,) = block.again(Recomputation.of("selective"))
    (piece,) = core.pieces
    assert isinstance(piece.op, Compute)
    assert piece.op.flops == 2 * 2 * 128 * 128 * 8 * 32 * 2
    assert core.kept == 5 * 8 * 128 * 128 * 2
    assert block.kept - block.held(Recomputation.of("selective")) == core.kept


def test_rotary_embedding_and_norms_are_passes_over_queries_and_keys(
    llama: Model, new_shard: NewShard, computed: Computed
) -> None:
    def moved(model: Model) -> int:
        return computed(attention(new_shard(model)))[0].nbytes

    q_and_k = 2 * TOKENS * (8 + 4) * 32
    assert moved(llama) - moved(replace(llama, positions="alibi")) == 2 * q_and_k
    assert moved(replace(llama, qk_norm=True)) - moved(llama) == 2 * q_and_k


def test_flash_never_moves_the_scores(gpt: Model, new_shard: NewShard, computed: Computed) -> None:
    def moved(shard: Shard) -> int:
        return computed(attention(shard))[0].nbytes

    short, long = (new_shard(gpt, micro_batch=256 // s, seq_len=s) for s in (64, 128))
    assert moved(short) == moved(long)
    extra = moved(replace(long, attention="unfused")) - moved(long)
    # Scores written, read, probabilities written, read: four times 2 bytes; flash alone has 4 bytes a row.
    assert extra == 4 * 2 * 8 * 128 * 128 * 2 - 4 * 8 * TOKENS


def test_workspace_holds_scores_and_gradients(gpt: Model, new_shard: NewShard) -> None:
    flash, unfused = (attention(new_shard(gpt, tp=2, attention=kind)) for kind in ("flash", "unfused"))
    x, qkv, output, scores = 2 * TOKENS * 256, 2 * TOKENS * 3 * 128, 2 * TOKENS * 128, 2 * 2 * 4 * 128 * 128
    assert (flash.forward_workspace, flash.backward_workspace) == (x, x + qkv + output)
    assert (unfused.forward_workspace, unfused.backward_workspace) == (x + scores, x + qkv + output + 2 * scores)


def test_flash_backward_reads_and_writes_everything_twice(gpt: Model, new_shard: NewShard, computed: Computed) -> None:
    _, backward, _ = computed(attention(new_shard(gpt)))
    assert backward is not None
    (kernel,) = [k for k in backward.kernels if k.kind == "attention"]
    # q, k, v, output and its gradient in, three gradients out, and the row statistics.
    assert kernel.nbytes == 2 * TOKENS * 8 * 256 + 4 * TOKENS * 8
    assert (kernel.m, kernel.n, kernel.k, kernel.batch) == (128, 128, 32, 16)


def test_biases_of_alibi_are_written_and_added_to(gpt: Model, new_shard: NewShard) -> None:
    def moved(model: Model) -> list[int]:
        block = attention(new_shard(model, attention="unfused"))
        ops = [piece.op for piece in block.forward if isinstance(piece.op, Compute)]
        return [kernel.nbytes for op in ops for kernel in op.kernels]

    plain, biased = moved(replace(gpt, positions="none")), moved(replace(gpt, positions="alibi"))
    scores = 2 * 2 * 8 * 128 * 128  # bytes, two sequences, 8 heads
    assert len(biased) == len(plain) + 1
    assert sum(biased) == sum(plain) + 2 * scores
