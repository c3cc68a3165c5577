"""How far off a device's kernels are when predicted by the numbers of another: what a borrowed number is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from clustersim.hardware.kernel_models import KernelModels
from clustersim.hardware.residual import spread
from clustersim.study.kernels.calibration import errors, part_of
from clustersim.study.kernels.measured import MeasuredKernel

__all__ = ["sibling_spreads"]

_LEAST_ROWS = 6


def sibling_spreads(rows: Sequence[MeasuredKernel], models: Mapping[str, KernelModels]) -> dict[str, float]:
    """Median over pairs of devices of how far the rows of one are from the numbers of the other.

    Peaks, bandwidth and launch latency stay those of the row's own device.

    Parameters
    ----------
    rows : Sequence[MeasuredKernel]
    models : Mapping[str, KernelModels]
        by device, calibrated on rows of its own

    Returns
    -------
    dict[str, float]
        kind of kernel -> standard deviation of the logarithm of time; kinds of two devices at least, with 6 rows each
    """
    parts: dict[str, dict[str, list[MeasuredKernel]]] = {}
    for row in rows:
        parts.setdefault(part_of(row), {}).setdefault(row.gpu.name, []).append(row)
    found: dict[str, list[float]] = {}
    for part, by_device in parts.items():
        measured = [name for name, of in by_device.items() if len(of) >= _LEAST_ROWS and name in models]
        for name in measured:
            others = (models[other] for other in measured if other != name)
            found.setdefault(part.partition(".")[0], []).extend(
                spread(errors(by_device[name], other)) for other in others
            )
    return {kind: float(np.median(of)) for kind, of in sorted(found.items()) if of}
