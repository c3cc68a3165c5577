"""The numbers of one kernel model under which measured kernels come out best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.attention_model import AttentionModel
from clustersim.hardware.gemm_model import GemmModel
from clustersim.hardware.memory_model import FORMS, MemoryModel
from clustersim.study.kernels.measured import MeasuredKernel

__all__ = ["best"]

Model = TypeVar("Model", GemmModel, AttentionModel, MemoryModel)
Array = NDArray[np.float64]

_PULL = 0.1
"""Weight with which each number is held near its start, in relative size; a row weighs 1 in the logarithm of time."""

_SMOOTH = 0.1
"""Error from which on a row pulls with its size rather than its square: kernels chosen badly by a library stand out."""

_FELT = 0.002
"""Change of every row's time below which a number counts as one that no row depends on."""

_MOST = {
    "peak": 1.0,
    "tile_half": 100.0,
    "tile_latency": 20e-6,
    "wave": 1.0,
    "memory_fraction": 1.0,
    "start_latency": 40e-6,
    "head_half": 200.0,
    "block_latency": 40e-6,
    "backward": 1.0,
    "cached": 0.6,
    **dict.fromkeys(FORMS, 0.95),
}
"""Largest value that is tried for each number. Refresh and turns of the bus cost memory some hundredths; what is faster
came from a cache."""

_STARTS = ((1.0, 1.0), (0.9, 2.0), (1.05, 0.3))
"""Places around the start where the search begins: factors on fractions of peaks, and on everything else."""


def best(
    start: Model, rows: Sequence[MeasuredKernel], seconds: Callable[[Model], Array]
) -> tuple[Model, frozenset[str]]:
    """The numbers under which the rows come out best, and those of them that some row depends on.

    Least squares on the logarithm of time, from a few places around the start.

    Parameters
    ----------
    start : GemmModel, AttentionModel or MemoryModel
        what each number is held near
    rows : Sequence[MeasuredKernel]
    seconds : callable
        numbers -> time of each row [s], shape (num_rows,)

    Raises
    ------
    ImportError
        when scipy is not installed
    """
    from scipy.optimize import least_squares

    names = [item.name for item in fields(start) if item.name in _MOST]
    origin = np.array([float(getattr(start, name)) for name in names])
    most = np.array([_MOST[name] for name in names])
    scale = np.maximum(origin, most / 100)
    measured = np.log([row.seconds for row in rows])

    def model(x: Array) -> Model:
        return replace(start, **dict(zip(names, (x * scale).tolist(), strict=True)))

    def residuals(x: Array) -> Array:
        return np.concatenate([np.log(seconds(model(x))) - measured, _PULL * (x - origin / scale)])

    least, top = np.full(len(names), 1e-3), most / scale
    peaks = np.array([name in ("peak", "memory_fraction", *FORMS) for name in names])
    tries = [
        least_squares(
            residuals,
            np.clip(origin / scale * np.where(peaks, of_peaks, of_others), least * 1.01, top * 0.99),
            bounds=(least, top),
            loss="soft_l1",
            f_scale=_SMOOTH,
            diff_step=[1e-3] * len(names),  # the times have steps: a finer difference sees none of them
            max_nfev=80,
        )
        for of_peaks, of_others in _STARTS
    ]
    found = min(tries, key=lambda one: one.cost)
    best, times = np.array(found.x), seconds(model(found.x))
    for i in range(len(names)):
        back = best.copy()
        back[i] = origin[i] / scale[i]
        if np.allclose(seconds(model(back)), times, rtol=_FELT):
            best = back
    moved = frozenset(name for i, name in enumerate(names) if best[i] != origin[i] / scale[i])
    return model(best), moved
