"""The LM head against counts by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.head import head, loss, loss_reductions
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

NewShard = Callable[..., Shard]
Computed = Callable[[Block], tuple[Compute, Compute | None, Compute | None]]
Flops = Callable[[Block], tuple[int, int]]
TOKENS = 2 * 128


@pytest.mark.parametrize("t", [1, 2])
def test_head(gpt: Model, new_shard: NewShard, flops: Flops, t: int) -> None:
    block = head(new_shard(gpt, tp=t), tied_here=False)
    assert block.parameters * t == 1024 * 256
    assert [t * n for n in flops(block)] == [2 * TOKENS * 1024 * 256, 4 * TOKENS * 1024 * 256]
    assert block.kept == 2 * TOKENS * 256
    assert loss(new_shard(gpt, tp=t)).kept == 4 * TOKENS * 1024 // t


def test_a_tied_head_has_no_weights_but_all_the_work(gpt: Model, new_shard: NewShard, flops: Flops) -> None:
    tied, own = (head(new_shard(gpt), tied_here=tied) for tied in (True, False))
    assert tied.parameters == 0
    assert flops(tied) == flops(own)


def test_a_padded_vocabulary(llama: Model, new_shard: NewShard) -> None:
    # 1000 rows on 16 ranks: the next multiple of 128 · 16.
    assert new_shard(llama, tp=16).vocab == 2048 // 16
    assert new_shard(llama, tp=8).vocab == 1000 // 8


def test_loss_reductions_are_three_numbers_a_token(gpt: Model, new_shard: NewShard) -> None:
    assert [op.nbytes for op in loss_reductions(new_shard(gpt, tp=2))] == [4 * TOKENS] * 3


def test_bytes(gpt: Model, new_shard: NewShard, computed: Computed) -> None:
    block = head(new_shard(gpt, tp=2), tied_here=False)
    forward, backward, _ = computed(block)
    x, matrix, logits = TOKENS * 256, 256 * 512, TOKENS * 512
    assert forward.nbytes == 2 * (x + matrix + logits)
    assert backward is not None
    assert backward.nbytes == 2 * (logits + matrix + x)
    assert (block.forward_workspace, block.backward_workspace) == (2 * logits, 2 * logits + 2 * x)


@pytest.mark.parametrize(
    ("kind", "kept", "forward", "backward"), [("parallel", 4, 2, 2), ("operators", 4, 6, 8), ("fused", 2, 0, 0)]
)
def test_memory_of_the_loss(gpt: Model, new_shard: NewShard, kind: str, kept: int, forward: int, backward: int) -> None:
    block = loss(new_shard(gpt, tp=2, loss=kind))
    logits = TOKENS * 512
    assert block.kept == kept * logits
    assert (block.forward_workspace, block.backward_workspace) == (forward * logits, backward * logits)


def test_bytes_of_the_loss(gpt: Model, new_shard: NewShard, computed: Computed) -> None:
    block = loss(new_shard(gpt, tp=2))
    forward, backward, _ = computed(block)
    logits = TOKENS * 512
    # Cast to fp32, row maximum, exponentials in place, normalised in place.
    assert forward.nbytes == (2 + 4 + 4 + 8 + 8) * logits
    assert backward is not None
    assert backward.nbytes == (8 + 4 + 2) * logits
    assert (block.forward_workspace, block.backward_workspace) == (2 * logits, 2 * logits)
