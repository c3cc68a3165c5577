"""State and traffic of the element-wise optimizers, a parameter, against what their papers say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.workload.optimizers.elementwise import (
    ADAGRAD,
    ADAM,
    ADAM_8BIT,
    ADAMW,
    LAMB,
    LION,
    SGD,
    SGD_MOMENTUM,
    Elementwise,
)
from clustersim.workload.precision import RECIPES

BLOCK = 2048
ALL = [ADAGRAD, ADAM, ADAM_8BIT, ADAMW, LAMB, LION, SGD, SGD_MOMENTUM]


@pytest.mark.parametrize(
    ("optimizer", "nbytes"),
    [(SGD, 0), (SGD_MOMENTUM, 4), (ADAGRAD, 4), (LION, 4), (ADAM, 8), (ADAMW, 8), (LAMB, 8)],
    ids=lambda value: getattr(value, "name", None),
)
def test_state_a_parameter_in_fp32(optimizer: Elementwise, nbytes: int) -> None:
    assert optimizer.state_nbytes(BLOCK, recipe=RECIPES["bf16"]) == nbytes * BLOCK


def test_8_bit_averages_take_a_quarter_and_their_scales() -> None:
    # Dettmers et al. 2021: 2 bytes a parameter instead of 8, and 4 bytes of scale for each block of each average.
    assert ADAM_8BIT.state_nbytes(BLOCK, recipe=RECIPES["bf16"]) == 2 * BLOCK + 2 * 4
    assert ADAM_8BIT.state_nbytes(BLOCK, recipe=RECIPES["fp8_blockwise"]) == 2 * BLOCK + 2 * 4


def test_averages_follow_the_recipe() -> None:
    assert ADAM.state_nbytes(BLOCK, recipe=RECIPES["fp8_blockwise"]) == 4 * BLOCK


@pytest.mark.parametrize(
    ("optimizer", "nbytes"),
    [
        (SGD, 4 + 2 * 4 + 2),
        (LION, 4 + 2 * 4 + 2 * 4 + 2),
        (ADAM, 4 + 2 * 4 + 4 * 4 + 2),
        (LAMB, 4 * 4 + 4 * 4 + 4 * 4 + 2),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_traffic_of_an_update_a_parameter(optimizer: Elementwise, nbytes: int) -> None:
    (kernel,) = optimizer.kernels(1000, recipe=RECIPES["bf16"], gradient_width=4)
    assert (kernel.nbytes, kernel.flops) == (1000 * nbytes, 0)


def test_without_a_master_copy_the_weight_itself_is_updated() -> None:
    (kernel,) = SGD.kernels(1000, recipe=RECIPES["fp32"], gradient_width=4)
    assert kernel.nbytes == 1000 * 3 * 4
    (kernel,) = SGD.kernels(1000, recipe=replace(RECIPES["bf16"], master=None), gradient_width=2)
    assert kernel.nbytes == 1000 * 3 * 2


@pytest.mark.parametrize("optimizer", ALL, ids=lambda optimizer: optimizer.name)
@given(blocks=st.integers(1, 100), shards=st.integers(1, 16))
def test_bytes_grow_with_parameters_and_shards_make_up_the_whole(
    optimizer: Elementwise, blocks: int, shards: int
) -> None:
    recipe, parameters = RECIPES["bf16"], blocks * shards * BLOCK
    one = optimizer.state_nbytes(BLOCK, recipe=recipe)
    assert optimizer.state_nbytes(parameters, recipe=recipe) == blocks * shards * one
    assert shards * optimizer.state_nbytes(parameters, recipe=recipe, shards=shards) == blocks * shards * one
    (whole,) = optimizer.kernels(parameters, recipe=recipe, gradient_width=4)
    (shard,) = optimizer.kernels(parameters, recipe=recipe, gradient_width=4, shards=shards)
    assert shards * shard.nbytes == whole.nbytes
    assert optimizer.gathered_nbytes((), shards) == 0
