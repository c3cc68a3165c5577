"""Linear attention: FLOP by the products it is made of, and what it keeps."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.linear_attention import linear_attention, state_nbytes
from clustersim.workload.model import Model
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shape.linear_attention import LinearAttention
from clustersim.workload.shard import Shard

TOKENS, HEADS, KV_HEADS, DIM, HIDDEN, FEATURES = 256, 8, 4, 32, 256, 48


@pytest.fixture
def model(llama: Model) -> Model:
    return replace(llama, linear=LinearAttention(features=FEATURES))


def test_flops(model: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]) -> None:
    """Forward: two maps, one sum, one reading. Backward: two sums, three readings, two maps."""
    matrices = HIDDEN * (HEADS + 2 * KV_HEADS) * DIM + HEADS * DIM * HIDDEN
    product = 2 * TOKENS * HEADS * FEATURES * DIM
    forward, backward = flops(linear_attention(new_shard(model)))
    assert forward == 2 * TOKENS * matrices + 4 * product
    assert backward == 4 * TOKENS * matrices + 7 * product


def test_work_grows_with_the_sequence_and_not_with_its_square(
    model: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]
) -> None:
    short, long = (flops(linear_attention(new_shard(model, seq_len=s))) for s in (128, 1024))
    assert long == (8 * short[0], 8 * short[1])


def test_ranks_split_heads(
    model: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]
) -> None:
    one, two = (linear_attention(new_shard(model, tp=tp)) for tp in (1, 2))
    assert flops(one) == tuple(2 * n for n in flops(two))
    assert one.parameters == 2 * two.parameters == model.parameters("linear_attention")


def test_mapped_queries_and_keys_can_be_computed_again(model: Model, new_shard: Callable[..., Shard]) -> None:
    block = linear_attention(new_shard(model))
    left = block.held(Recomputation.of("selective", modules=("core",)))
    assert block.kept - left == 2 * TOKENS * 2 * HEADS * FEATURES + 4 * TOKENS * HEADS
    assert left == 2 * TOKENS * (HIDDEN + (HEADS + 2 * KV_HEADS) * DIM + HEADS * DIM)


def test_the_state_is_as_large_as_the_features(model: Model, new_shard: Callable[..., Shard]) -> None:
    assert state_nbytes(new_shard(model)) == 4 * 2 * HEADS * FEATURES * (DIM + 1)
    assert state_nbytes(new_shard(model, seq_len=1024)) == state_nbytes(new_shard(model))
