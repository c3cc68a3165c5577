"""The MLP block against counts by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

NewShard = Callable[..., Shard]
Computed = Callable[[Block], tuple[Compute, Compute | None, Compute | None]]
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


def test_dropout_adds_a_pass_backward(gpt: Model, new_shard: NewShard, computed: Computed) -> None:
    with_mask, without = (computed(mlp(new_shard(gpt, dropout=d)))[1] for d in (True, False))
    assert with_mask is not None
    assert without is not None
    assert with_mask.nbytes - without.nbytes == (2 + 2 + 1) * TOKENS * 256


@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_bytes(llama: Model, new_shard: NewShard, computed: Computed, sequence_parallel: bool) -> None:
    block = mlp(new_shard(llama, tp=2, sequence_parallel=sequence_parallel))
    forward, backward, weight_gradient = computed(block)
    x, gate_and_up, f, first, second = TOKENS * 256, TOKENS * 688, TOKENS * 344, 256 * 688, 344 * 256
    assert forward.nbytes == 2 * (x + first + gate_and_up) + 2 * (gate_and_up + f) + 2 * (f + second + x)
    assert backward is not None
    products = 2 * (x + second + f) + 2 * (f + x) + 8 * second + 2 * (gate_and_up + first + x)
    # The gate's gradient needs both halves and the gradient of their product, and gives two.
    assert backward.nbytes == products + 2 * (f + 2 * gate_and_up)
    assert weight_gradient is not None
    assert weight_gradient.nbytes == 2 * (x + gate_and_up) + 8 * first
    assert block.forward_workspace == 2 * x
    assert block.backward_workspace == 2 * (x + gate_and_up + f)
