"""Products that add to what stands there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library.part import load_part
from clustersim.workload.layers.kernels import gemm


@pytest.fixture(scope="module")
def b200() -> GPU:
    return load_part("gpu", "b200")


def weight_gradient(m: int, n: int, tokens: int) -> Kernel:
    product = gemm(m, n, tokens, dtype="bf16")
    return replace(product, nbytes=product.nbytes + 6 * m * n, read_back=4 * m * n)


@pytest.mark.parametrize(
    ("m", "n", "tokens", "longer"),
    [  # SimuMax configs/system/b200_bf16_ceperm.json: over the mean of the two other products of the same layer
        (106496, 16384, 4096, 1.105),
        (53248, 16384, 4096, 1.101),
        (57344, 8192, 4096, 1.069),
        (26624, 16384, 2048, 1.176),
    ],
)
def test_sums_in_fp32_cost_what_was_measured(b200: GPU, m: int, n: int, tokens: int, longer: float) -> None:
    hot = b200.at_clock(0.74)
    took = (
        kernel_cost(weight_gradient(m, n, tokens), hot).seconds
        / kernel_cost(gemm(m, n, tokens, dtype="bf16"), hot).seconds
    )
    assert took == pytest.approx(longer, abs=0.05)


def test_only_an_exposed_part_counts(b200: GPU) -> None:
    product = weight_gradient(8192, 8192, 4096)
    hidden = kernel_cost(product, replace(b200, exposed_read_back=0.0)).seconds
    half = kernel_cost(product, replace(b200, exposed_read_back=0.5)).seconds
    assert kernel_cost(product, b200).seconds - hidden == pytest.approx(2 * (half - hidden))
    assert hidden == pytest.approx(kernel_cost(replace(product, read_back=0), b200).seconds)
    with pytest.raises(ValueError, match="exposed_read_back"):
        replace(b200, exposed_read_back=1.5)
