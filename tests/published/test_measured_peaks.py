"""Measured kernels and the cards' peaks agree: none is faster than its device, and large products come near.

A sparse peak in the place of a dense one would leave the best product of a device below half of it.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from clustersim.library.measurements import measurement_files
from clustersim.readers import kernel_rows
from clustersim.study.kernels.measured import MeasuredKernel, place

(FILE,) = (path for path in measurement_files() if path.name == "kernels.csv")
MEASURED, _ = place(kernel_rows.read(FILE)[0])


def seconds_at_peak(row: MeasuredKernel) -> float:
    """Of all launches in a row, at the dense peaks of the units that do their FLOP [s]."""
    return sum(
        kernel.count
        * kernel.flops
        / (row.gpu.vector_flop_per_s if kernel.kind == "memory" else row.gpu.flop_per_s(kernel.dtype))
        for kernel in row.kernels
    )


def best_products() -> dict[tuple[str, str], float]:
    """Fraction of the dense peak of matrix units that the best product reaches, by device and dtype."""
    best: dict[tuple[str, str], float] = defaultdict(float)
    for row in MEASURED:
        if row.kind == "gemm" and row.kernel.dtype in row.gpu.tensor_flop_per_s:
            key = row.gpu.name, row.kernel.dtype
            best[key] = max(best[key], seconds_at_peak(row) / row.seconds)
    return best


def test_no_measured_kernel_beats_its_device() -> None:
    assert len(MEASURED) > 1000
    assert [row.row.id for row in MEASURED if seconds_at_peak(row) > row.seconds] == []


@pytest.mark.parametrize(("key", "fraction"), sorted(best_products().items()), ids=str)
def test_the_best_product_is_beyond_half_of_the_dense_peak(key: tuple[str, str], fraction: float) -> None:
    assert 0.5 < fraction < 1
