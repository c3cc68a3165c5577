"""The MLP block against counts by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.model import Model
from clustersim.workload.shard import Shard

NewShard = Callable[..., Shard]
Flops = Callable[[Block], tuple[int, int]]
TOKENS = 2 * 128


@pytest.mark.parametrize("t", [1, 2, 8])
def test_gated(llama: Model, new_shard: NewShard, flops: Flops, t: int) -> None:
    block = mlp(new_shard(llama, tp=t))
    assert block.parameters * t == 3 * 256 * 688
    assert [t * n for n in flops(block)] == [2 * TOKENS * 3 * 256 * 688, 4 * TOKENS * 3 * 256 * 688]


def test_plain_with_biases(gpt: Model, new_shard: NewShard, flops: Flops) -> None:
    block = mlp(new_shard(gpt, tp=2))
    assert block.parameters == 256 * 512 + 512 + 512 * 256 + 256
    assert block.replicated_parameters == 256
    assert flops(block) == (2 * TOKENS * 2 * 256 * 512, 4 * TOKENS * 2 * 256 * 512)


def test_dropout_adds_a_pass_backward(gpt: Model, new_shard: NewShard) -> None:
    with_mask, without = (mlp(new_shard(gpt, dropout=d)).backward for d in (True, False))
    assert with_mask is not None
    assert without is not None
    assert with_mask.nbytes - without.nbytes == (2 + 2 + 1) * TOKENS * 256
