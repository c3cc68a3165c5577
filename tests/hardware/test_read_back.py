"""Products that add to what stands there."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library.part import load_part
from clustersim.workload.layers.kernels import gemm

# m, n, tokens and the shares of the peak that products reach which add to sums in fp32 and in bf16: every shape of
# 1 TFLOP and more that SimuMax timed with both (configs/system/b200_bf16_ceperm.json)
PAIRS = [
    (4096, 7168, 32768, 0.4314, 0.4327),
    (7168, 18432, 4096, 0.4549, 0.4759),
    (8192, 28672, 4096, 0.4594, 0.4802),
    (10240, 16384, 4096, 0.4768, 0.5271),
    (13312, 16384, 4096, 0.4438, 0.4990),
    (16128, 8192, 4096, 0.4504, 0.5228),
    (16128, 16384, 4096, 0.4487, 0.4835),
    (16384, 8192, 4096, 0.4533, 0.5029),
    (16384, 13312, 4096, 0.4472, 0.4694),
    (16384, 16384, 4096, 0.4523, 0.4837),
    (16384, 26624, 4096, 0.4547, 0.4771),
    (16384, 53248, 4096, 0.4536, 0.4775),
    (20480, 16384, 4096, 0.4547, 0.4910),
    (24576, 5120, 4096, 0.4373, 0.4770),
    (26624, 16384, 4096, 0.4513, 0.4931),
    (28672, 8192, 4096, 0.4535, 0.4870),
    (32128, 4096, 4096, 0.4382, 0.5755),
    (32128, 8192, 4096, 0.4445, 0.4968),
    (32128, 16384, 4096, 0.4524, 0.4751),
    (36864, 7168, 4096, 0.4489, 0.4782),
    (53248, 16384, 4096, 0.4546, 0.4761),
    (57344, 8192, 4096, 0.4536, 0.4825),
    (64128, 8192, 4096, 0.4529, 0.4622),
    (64128, 16384, 4096, 0.4527, 0.4813),
    (64256, 4096, 4096, 0.4333, 0.4856),
    (102400, 5120, 4096, 0.4446, 0.4752),
    (106496, 16384, 4096, 0.4562, 0.4795),
    (128256, 8192, 4096, 0.4548, 0.4775),
    (128256, 16384, 4096, 0.4546, 0.4784),
    (128384, 4096, 4096, 0.4471, 0.4725),
    (129280, 7168, 4096, 0.4477, 0.4742),
]


@pytest.fixture(scope="module")
def b200() -> GPU:
    return load_part("gpu", "b200")


def weight_gradient(m: int, n: int, tokens: int, *, width: int = 4) -> Kernel:
    """Adds to sums of ``width`` [B] an element."""
    product = gemm(m, n, tokens, dtype="bf16")
    return replace(product, nbytes=product.nbytes + (2 * width - 2) * m * n, read_back=width * m * n)


def longer(gpu: GPU) -> float:
    """By which part sums in fp32 make products last longer than sums in bf16, median of all pairs."""
    return median(
        kernel_cost(weight_gradient(*shape), gpu).seconds / kernel_cost(weight_gradient(*shape, width=2), gpu).seconds
        - 1
        for *shape, _, _ in PAIRS
    )


def test_sums_in_fp32_cost_most_of_what_was_measured(b200: GPU) -> None:
    measured = median(bf16 / fp32 - 1 for *_, fp32, bf16 in PAIRS)
    hot = b200.at_clock(0.74)
    assert 0.6 * measured < longer(hot) < measured
    assert longer(replace(hot, exposed_read_back=0.0)) < 0.1 * measured


def test_only_an_exposed_part_counts(b200: GPU) -> None:
    product = weight_gradient(8192, 8192, 4096)
    hidden = kernel_cost(product, replace(b200, exposed_read_back=0.0)).seconds
    half = kernel_cost(product, replace(b200, exposed_read_back=0.5)).seconds
    assert kernel_cost(product, b200).seconds - hidden == pytest.approx(2 * (half - hidden))
    assert hidden == pytest.approx(kernel_cost(replace(product, read_back=0), b200).seconds)
    with pytest.raises(ValueError, match="exposed_read_back"):
        replace(b200, exposed_read_back=1.5)
