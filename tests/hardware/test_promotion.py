"""Products of 8-bit operands whose sums are kept in fp32."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.promotion import promotion
from clustersim.library.part import load_part
from clustersim.workload.layers.kernels import gemm

sides = st.integers(1, 20_000)


@pytest.fixture(scope="module")
def h100() -> GPU:
    return load_part("gpu", "h100-sxm")


def slower(kernel: Kernel, gpu: GPU) -> float:
    return kernel_cost(replace(kernel, promoted=True), gpu).seconds / kernel_cost(kernel, gpu).seconds


@settings(deadline=None, max_examples=60)
@given(m=sides, n=sides, k=sides)
def test_never_faster_than_fast_accumulation(m: int, n: int, k: int) -> None:
    assert 1 <= slower(gemm(m, n, k, dtype="fp8"), load_part("gpu", "h100-sxm")) < 1.2


@pytest.mark.parametrize(("m", "n", "k"), [(8192, 8192, 8192), (16384, 4096, 14336), (4096, 28672, 8192)])
def test_long_products_take_as_much_longer_as_was_measured(h100: GPU, m: int, n: int, k: int) -> None:
    """Fast accumulation was 1.1 to 1.2 times as fast (pytorch/ao issue 2377)."""
    assert 1.1 < slower(gemm(m, n, k, dtype="fp8"), h100) < 1.2


def test_others_pay_nothing(h100: GPU) -> None:
    product = replace(gemm(8192, 8192, 8192, dtype="fp8"), promoted=True)
    assert promotion(replace(product, dtype="bf16"), h100) == 0
    assert promotion(replace(product, promoted=False), h100) == 0
    assert promotion(product, load_part("gpu", "b200")) == 0


def test_additions_go_with_the_clock(h100: GPU) -> None:
    product = replace(gemm(8192, 8192, 8192, dtype="fp8"), promoted=True)
    assert promotion(product, h100.at_clock(0.5)) == pytest.approx(2 * promotion(product, h100))
