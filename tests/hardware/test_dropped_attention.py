"""Fused attention that drops some of its weights."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.hardware.dropped_attention import drawing
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_table import KernelTable, TimedKernel
from clustersim.library.part import load_part
from clustersim.workload.layers.kernels import memory_pass

HEADS, LENGTH, WIDTH = 16, 32_768, 128


def attention(*, backward: bool = False, dropout: bool = True) -> Kernel:
    flops = (5 if backward else 2) * HEADS * LENGTH**2 * WIDTH
    shape = {"m": LENGTH, "n": LENGTH, "k": WIDTH, "batch": HEADS}
    nbytes = (1 + backward) * 8 * HEADS * LENGTH * WIDTH
    return Kernel(
        kind="attention", dtype="bf16", flops=flops, nbytes=nbytes, backward=backward, dropout=dropout, **shape
    )


@pytest.mark.parametrize(("backward", "least", "most"), [(False, 0.75, 0.85), (True, 0.6, 0.7)])
@pytest.mark.parametrize("device", ["gb200", "h100-sxm", "mi300x"])
def test_what_is_left_of_the_rate_is_as_measured(device: str, backward: bool, least: float, most: float) -> None:
    """Dao-AILab/flash-attention pull request 2597, 32,768 tokens on GB200; a roofline on devices without kernels."""
    gpu = load_part("gpu", device)
    kernel = attention(backward=backward)
    left = kernel_cost(replace(kernel, dropout=False), gpu).seconds / kernel_cost(kernel, gpu).seconds
    assert least < left < most


def test_kernels_that_only_move_bytes_pay_nothing() -> None:
    gpu = load_part("gpu", "h100-sxm")
    short = Kernel(kind="attention", dtype="bf16", flops=4 * 128, nbytes=10**9, m=1, n=1, k=128, batch=1)
    assert kernel_cost(replace(short, dropout=True), gpu).seconds == kernel_cost(short, gpu).seconds
    assert drawing(memory_pass(10**9, dtype="bf16")) == 1


def test_a_measurement_without_dropout_tells_nothing_of_one_with_it() -> None:
    gpu = load_part("gpu", "h100-sxm")
    without = attention(dropout=False)
    table = KernelTable(rows=(TimedKernel(device=gpu.name, kernel=without, seconds=1e-3),))
    assert table(without, gpu).provenance == "measured"
    assert table(attention(), gpu).provenance != "measured"
