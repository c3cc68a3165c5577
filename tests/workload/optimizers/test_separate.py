"""Adam operator by operator: bytes of its formula, and as many kernels as tensors."""

from __future__ import annotations

import pytest

from clustersim.workload.optimizers.elementwise import ADAM
from clustersim.workload.optimizers.separate import separate_adam
from clustersim.workload.precision import RECIPES
from clustersim.workload.weights import Weights

FP32 = RECIPES["fp32"]


def nbytes(kernels_of: str, recipe: str = "fp32", num_tensors: int = 10) -> int:
    kernels = separate_adam(
        1000, recipe=RECIPES[recipe], gradient_width=4, kernels_of=kernels_of, num_tensors=num_tensors
    )
    return sum(kernel.nbytes * kernel.count for kernel in kernels)


def test_twenty_passes_over_a_parameter_in_fp32() -> None:
    # weight 4, gradient 2, averages and what is made of them 14 times
    assert nbytes("foreach") == 1000 * 4 * 20
    assert nbytes("loop") == nbytes("foreach")
    (fused,) = ADAM.kernels(1000, recipe=FP32, gradient_width=4)
    assert nbytes("foreach") > 2.5 * fused.nbytes


def test_a_master_copy_is_copied_back() -> None:
    assert nbytes("foreach", "bf16") == 1000 * (4 * 20 + 4 + 2)


def test_a_loop_launches_for_each_tensor() -> None:
    kernels = separate_adam(1005, recipe=FP32, gradient_width=4, kernels_of="loop", num_tensors=10)
    assert {kernel.count for kernel in kernels} == {10}
    assert all(kernel.nbytes % 101 == 0 for kernel in kernels)


@pytest.mark.parametrize("kernels_of", ["fused", "copied", "foreach", "loop"])
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("recipe", ["bf16", "fp16"])
def test_checks_and_step_are_the_update(kernels_of: str, clip: bool, recipe: str) -> None:
    weights = Weights(
        parameters=1000, recipe=recipe, gradient_dtype="fp32", clip=clip, kernels_of=kernels_of, num_tensors=4
    )
    assert weights.update().kernels == (*weights.checks(), *weights.step())
    assert len(weights.checks()) == clip * (1 + (kernels_of == "copied")) + RECIPES[recipe].loss_scaling
