"""What the recipes mix, against the papers and guides that define them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.faults import BadInput
from clustersim.workload.number_format import WIDTH
from clustersim.workload.precision import RECIPES, find_recipe

ELEMENTS = 128 * 128 * 16


def test_deepseek_v3_keeps_master_weights_and_gradients_in_fp32_and_moments_in_bf16() -> None:
    recipe = RECIPES["fp8_blockwise"]
    assert (recipe.master, recipe.gradients, recipe.moments) == ("fp32", "fp32", "bf16")


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_not_quantised_is_multiplied_as_it_is_stored(name: str) -> None:
    recipe = RECIPES[name]
    plain = replace(recipe, quantisation=None)
    assert recipe.name == name
    assert plain.activation_operand.nbytes(ELEMENTS) == WIDTH[recipe.activations] * ELEMENTS
    assert (recipe.master is None) == (recipe.weights == "fp32" or name == "bf16_pure")
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
