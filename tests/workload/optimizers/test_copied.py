"""Bytes of an update around which gradients and weights are copied."""

from __future__ import annotations

import pytest

from clustersim.workload.number_format import Dtype
from clustersim.workload.optimizers.separate import UpdateKernels
from clustersim.workload.weights import Weights


def moved(recipe: str, gradient: Dtype, *, clip: bool = True, kernels_of: UpdateKernels = "copied") -> float:
    """Bytes a parameter, without the pass that zeroes gradients."""
    weights = Weights(parameters=1000, recipe=recipe, gradient_dtype=gradient, clip=clip, kernels_of=kernels_of)
    return sum(kernel.nbytes for kernel in weights.update().kernels[:-1]) / 1000


@pytest.mark.parametrize(
    ("recipe", "gradient", "clip", "nbytes"),
    [
        # copy 6, unscaling 8, norm 4, scaling 8, Adam 28, copy back 6
        ("fp16", "fp16", True, 60),
        ("fp16", "fp16", False, 48),
        ("bf16", "fp32", True, 4 + 8 + 28 + 6),
        ("fp32", "fp32", True, 4 + 8 + 28),
    ],
)
def test_passes(recipe: str, gradient: Dtype, clip: bool, nbytes: int) -> None:
    assert moved(recipe, gradient, clip=clip) == nbytes


def test_copies_move_more_than_one_pass() -> None:
    assert moved("fp16", "fp16") > 1.5 * moved("fp16", "fp16", kernels_of="fused")
