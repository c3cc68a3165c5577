"""Residuals of cards against the measurements that they were calibrated by."""

from __future__ import annotations

import numpy as np
import pytest

from clustersim.hardware.kernel_models import SIBLINGS
from clustersim.hardware.residual import spread
from clustersim.hardware.roofline import SPREAD, roofline
from clustersim.library.card import library_folder
from clustersim.readers import kernel_rows
from clustersim.study.kernels.calibration import errors, part_of
from clustersim.study.kernels.measured import MeasuredKernel, place
from clustersim.study.kernels.siblings import sibling_spreads

ROWS, _ = place(kernel_rows.read(library_folder() / "workloads" / "measurements" / "kernels.csv")[0])
GPUS = {row.gpu.name: row.gpu for row in ROWS}


def by_part(device: str) -> dict[str, list[MeasuredKernel]]:
    found: dict[str, list[MeasuredKernel]] = {}
    for row in ROWS:
        if row.gpu.name == device:
            found.setdefault(part_of(row), []).append(row)
    return found


@pytest.mark.parametrize("device", sorted(GPUS))
def test_a_card_is_as_far_off_as_it_says(device: str) -> None:
    """Within a tenth: cards have two digits."""
    models = GPUS[device].kernels
    if models is None or models.name != device:
        pytest.skip("the device has no kernel card of its own")
    told = {part: spread(errors(rows)) for part, rows in by_part(device).items() if part in models.residual}
    assert told == pytest.approx(dict(models.residual), rel=0.1)


def test_a_device_by_the_numbers_of_another() -> None:
    models = {name: gpu.kernels for name, gpu in GPUS.items() if gpu.kernels is not None and gpu.kernels.name == name}
    assert sibling_spreads(ROWS, models) == pytest.approx(dict(SIBLINGS), rel=0.15)


@pytest.mark.parametrize("kind", sorted(SPREAD))
def test_curves_of_size_are_further_off_than_models(kind: str) -> None:
    """With the device's own curves, the median over devices; the spread of borrowed ones is larger still."""
    found = []
    for device in GPUS:
        for part, rows in by_part(device).items():
            if part.partition(".")[0] == kind and len(rows) >= 6:
                times = [sum(roofline(kernel, row.gpu).seconds for kernel in row.kernels) for row in rows]
                found.append(spread(np.array(times) / [row.seconds for row in rows] - 1))
    assert SIBLINGS[kind] < SPREAD[kind]
    assert np.median(found) < SPREAD[kind]
