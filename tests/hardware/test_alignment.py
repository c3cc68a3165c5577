"""Products whose operands do not stand at multiples of 16 bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.hardware.alignment import element_load, is_aligned
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library.part import load_part
from clustersim.workload.layers.kernels import gemm

sides = st.integers(1, 9000)


@pytest.fixture(scope="module")
def a100() -> GPU:
    return gpu("a100-sxm-40gb")


def gpu(name: str) -> GPU:
    return load_part("gpu", name)


def product(m: int, n: int, k: int, batch: int = 1, dtype: str = "fp16") -> Kernel:
    return gemm(m, n, k, batch=batch, dtype=dtype, aligned=is_aligned(n, k))


@pytest.mark.parametrize(
    ("contiguous", "aligned"), [((2048, 224), True), ((2048, 225), False), ((180, 2048), False), ((8,), True)]
)
def test_multiples_of_eight_are_aligned(contiguous: tuple[int, ...], aligned: bool) -> None:
    assert is_aligned(*contiguous) is aligned


@settings(deadline=None, max_examples=60)
@given(m=sides, n=sides, k=sides, batch=st.integers(1, 64))
def test_never_faster_than_aligned(m: int, n: int, k: int, batch: int) -> None:
    device = gpu("a100-sxm-40gb")
    kernel = gemm(m, n, k, batch=batch, dtype="bf16")
    assert kernel_cost(replace(kernel, aligned=False), device).seconds >= kernel_cost(kernel, device).seconds


def test_large_products_pay_and_others_do_not(a100: GPU) -> None:
    whole, odd = product(8192, 8192, 8192), product(8192, 8192, 8191)
    assert kernel_cost(odd, a100).seconds > 1.3 * kernel_cost(whole, a100).seconds
    assert element_load(whole, a100) == 0
    assert element_load(replace(odd, dtype="tf32"), a100) == 0
    assert element_load(odd, replace(a100, accesses_per_s=None)) == 0


def test_loads_go_with_the_clock(a100: GPU) -> None:
    odd = product(8192, 8192, 8191)
    assert element_load(odd, a100.at_clock(0.5)) == pytest.approx(2 * element_load(odd, a100))


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_published_batch_of_products(a100: GPU, dtype: str) -> None:
    """PyTorch issue 83272, CUDA 11.7: 1.314 ms in fp16 and 1.318 ms in bf16."""
    kernel = product(1024, 140, 1024, batch=384, dtype=dtype)
    assert kernel_cost(kernel, a100).seconds == pytest.approx(1.316e-3, rel=0.05)
