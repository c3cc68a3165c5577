"""Bytes of the formats and what the recipes mix, against the papers and guides that define them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.faults import BadInput
from clustersim.workload.precision import FORMATS, RECIPES, WIDTH, find_recipe

ELEMENTS = 128 * 128 * 16


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("fp32", 32),
        ("tf32", 32),
        ("bf16", 16),
        ("fp8", 8),
        ("fp8 1x128", 8 + 32 / 128),
        ("fp8 128x128", 8 + 32 / 128**2),
        ("mxfp8", 8 + 8 / 32),
        ("nvfp4", 4 + 8 / 16),
    ],
)
def test_bits_an_element_with_scales(name: str, bits: float) -> None:
    assert FORMATS[name].nbytes(ELEMENTS) * 8 == bits * ELEMENTS


@pytest.mark.parametrize("name", FORMATS)
def test_a_tensor_in_parts_takes_at_least_as_much(name: str) -> None:
    form = FORMATS[name]
    assert form.nbytes(0) == 0
    for elements in (2, 31, 129, 1000):
        assert 2 * form.nbytes(elements) >= form.nbytes(2 * elements) > form.nbytes(elements)


def test_a_cast_reads_16_bits_and_writes_two_copies() -> None:
    delayed, current = RECIPES["fp8"].quantisation, RECIPES["fp8_current"].quantisation
    assert delayed is not None
    assert current is not None
    assert delayed.cast_nbytes(ELEMENTS, width=2) == (2 + 2 * 1) * ELEMENTS
    assert current.cast_nbytes(ELEMENTS, width=2) == (2 + 2 + 2 * 1) * ELEMENTS
    assert replace(delayed, copies=1).cast_nbytes(ELEMENTS, width=2) == (2 + 1) * ELEMENTS


def test_weights_of_blockwise_fp8_have_coarser_scales_than_activations() -> None:
    blockwise = RECIPES["fp8_blockwise"].quantisation
    assert blockwise is not None
    assert blockwise.weight_copies_nbytes(128 * 128) == 2 * (128 * 128 + 4)
    assert blockwise.weight_cast_nbytes(128 * 128, width=2) == (2 + 2) * 128 * 128 + 2 * 4
    assert blockwise.activations.nbytes(128 * 128) == 128 * 128 + 4 * 128


def test_deepseek_v3_keeps_master_weights_and_gradients_in_fp32_and_moments_in_bf16() -> None:
    recipe = RECIPES["fp8_blockwise"]
    assert (recipe.master, recipe.gradients, recipe.moments) == ("fp32", "fp32", "bf16")


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_not_quantised_is_multiplied_as_it_is_stored(name: str) -> None:
    recipe = RECIPES[name]
    plain = replace(recipe, quantisation=None)
    assert recipe.name == name
    assert plain.activation_operand.nbytes(ELEMENTS) == WIDTH[recipe.activations] * ELEMENTS
    assert (recipe.master is None) == (recipe.weights == "fp32")
    if recipe.quantisation is not None:
        assert recipe.activation_operand.nbytes(ELEMENTS) < plain.activation_operand.nbytes(ELEMENTS)
        assert recipe.weight_operand.nbytes(ELEMENTS) < plain.weight_operand.nbytes(ELEMENTS)


def test_fsdp2_keeps_fp32_and_gathers_bf16() -> None:
    recipe = replace(RECIPES["bf16"], weights="fp32", master=None, gathered="bf16")
    assert (recipe.updated_width, recipe.gathered_width, recipe.width) == (4, 2, 2)
    assert (RECIPES["bf16"].updated_width, RECIPES["bf16"].gathered_width) == (4, 2)


def test_only_fp16_scales_its_loss() -> None:
    assert [name for name, recipe in RECIPES.items() if recipe.loss_scaling] == ["fp16"]


def test_a_recipe_is_found_by_name_or_taken_as_it_is() -> None:
    own = replace(RECIPES["bf16"], name="own", moments="bf16")
    assert find_recipe("mxfp8") is RECIPES["mxfp8"]
    assert find_recipe(own) is own
    with pytest.raises(BadInput, match=r"'fp8_blokwise' must be one of bf16, .*; nearest: fp8_blockwise"):
        find_recipe("fp8_blokwise")
