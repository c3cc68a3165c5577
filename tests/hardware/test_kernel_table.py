"""A table of own measurements: exact where it has a row, interpolated between two, the model elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_table import KernelTable, TimedKernel
from clustersim.library import load_part

H100, A100 = load_part("gpu", "h100-sxm"), load_part("gpu", "a100-sxm-80gb")


def gemm(m: int, n: int = 4096, k: int = 4096) -> Kernel:
    return Kernel(kind="gemm", dtype="bf16", flops=2 * m * n * k, nbytes=2 * (m * k + k * n + m * n), m=m, n=n, k=k)


def slower(kernel: Kernel, factor: float) -> TimedKernel:
    return TimedKernel(device="h100-sxm", kernel=kernel, seconds=factor * kernel_cost(kernel, H100).seconds)


def test_a_measured_shape_takes_its_time() -> None:
    table = KernelTable(rows=[slower(gemm(512), 2.0), slower(gemm(512), 2.2), slower(gemm(512), 9.0)])
    cost = table(replace(gemm(512), count=3), H100)
    assert cost.provenance == "measured"
    assert cost.seconds == pytest.approx(3 * 2.2 * kernel_cost(gemm(512), H100).seconds)


def test_between_two_measurements_their_ratio_to_the_model_is_interpolated() -> None:
    table = KernelTable(rows=[slower(gemm(512), 2.0), slower(gemm(8192), 0.5)])
    cost = table(gemm(2048), H100)
    assert cost.provenance == "interpolated"
    assert cost.seconds / kernel_cost(gemm(2048), H100).seconds == pytest.approx(1.0)


def test_squares_grow_along_a_line_too() -> None:
    table = KernelTable(rows=[slower(gemm(n, n, n), 1.5) for n in (1024, 4096)])
    cost = table(gemm(2048, 2048, 2048), H100)
    assert cost.provenance == "interpolated"
    assert cost.seconds == pytest.approx(1.5 * kernel_cost(gemm(2048, 2048, 2048), H100).seconds)


def test_the_nearest_pair_counts() -> None:
    rows = [slower(gemm(m), factor) for m, factor in ((256, 4.0), (1024, 2.0), (4096, 2.0), (16384, 4.0))]
    assert KernelTable(rows=rows)(gemm(2048), H100).seconds == pytest.approx(
        2.0 * kernel_cost(gemm(2048), H100).seconds
    )


@pytest.mark.parametrize(
    "kernel",
    [
        gemm(256),
        gemm(9000),
        gemm(2048, n=4100),
        replace(gemm(2048), dtype="fp16"),
        Kernel(kind="memory", dtype="bf16", flops=0, nbytes=10**8),
    ],
)
def test_outside_of_the_table_the_model_answers(kernel: Kernel) -> None:
    table = KernelTable(rows=[slower(gemm(512), 2.0), slower(gemm(8192), 0.5)])
    assert table(kernel, H100) == kernel_cost(kernel, H100)


def test_a_table_is_of_its_device() -> None:
    table = KernelTable(rows=[slower(gemm(512), 2.0)])
    assert table(gemm(512), A100) == kernel_cost(gemm(512), A100)


def test_gradients_and_masks_are_kernels_of_their_own() -> None:
    full = Kernel(kind="attention", dtype="bf16", flops=4 * 1024**2 * 128, nbytes=10**6, m=1024, n=1024, k=128)
    causal, backward = replace(full, flops=full.flops // 2), replace(full, backward=True)
    table = KernelTable(rows=[slower(full, 2.0)])
    assert table(full, H100).provenance == "measured"
    assert {table(other, H100).provenance for other in (causal, backward)}.isdisjoint({"measured", "interpolated"})


@pytest.mark.parametrize("seconds", [0.0, -1.0, np.inf])
def test_a_time_must_be_one(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds"):
        TimedKernel(device="h100-sxm", kernel=gemm(1), seconds=seconds)


@given(m=st.integers(512, 8192), factors=st.tuples(*[st.floats(0.01, 100)] * 2), dtype=st.sampled_from(["bf16", "fp8"]))
def test_no_kernel_beats_the_peaks_whatever_was_measured(m: int, factors: tuple[float, float], dtype: str) -> None:
    ends = [slower(replace(gemm(rows), dtype=dtype), factor) for rows, factor in zip((512, 8192), factors, strict=True)]
    kernel = replace(gemm(m), dtype=dtype)
    cost = KernelTable(rows=ends)(kernel, H100)
    assert cost.provenance in ("measured", "interpolated")
    assert kernel.flops <= cost.seconds * H100.flop_per_s(dtype) * (1 + 1e-12)
    assert kernel.nbytes <= cost.seconds * H100.memory_bandwidth * (1 + 1e-12)


def test_a_pass_in_a_warm_cache_takes_the_bandwidth() -> None:
    warm = Kernel(kind="memory", dtype="bf16", flops=0, nbytes=33_500_000)
    table = KernelTable(rows=[TimedKernel(device="h100-sxm", kernel=warm, seconds=5e-6)])
    assert table(warm, H100).seconds == pytest.approx(10e-6)
    assert table.beating_peak(H100) == {}


def test_rows_that_no_kernel_can_reach_are_found() -> None:
    reached, sparse = (TimedKernel(device="h100-sxm", kernel=gemm(4096), seconds=s) for s in (140e-6, 138e-6))
    without = TimedKernel(device="h100-sxm", kernel=replace(gemm(4096), dtype="nvfp4"), seconds=1.0)
    elsewhere = TimedKernel(device="b200", kernel=gemm(4096), seconds=70e-6)
    found = KernelTable(rows=[reached, sparse, elsewhere, without]).beating_peak(H100)
    assert found == {1: pytest.approx(2 * 4096**3 / 989.4e12), 3: np.inf}
