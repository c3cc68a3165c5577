"""Measured kernels -> the numbers of a device's kernel models under which they come out best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.attention_model import AttentionModel
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_models import ALIKE, KernelModels
from clustersim.study.kernels import row_times
from clustersim.study.kernels.measured import MeasuredKernel
from clustersim.study.kernels.search import best

__all__ = ["Fitted", "calibrate_kernels", "errors", "left_out_errors", "part_of"]

Array = NDArray[np.float64]

_LEAST_ROWS = 6
"""Rows of a dtype or of an attention kernel below which its numbers stay those of the start."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """A card's outcome.

    Parameters
    ----------
    models : KernelModels
        as calibrated, its sources still those of the start
    rows : Mapping[str, tuple[MeasuredKernel, ...]]
        rows by the part of the card that they calibrated: ``gemm.bf16``, ``attention.flash-2``, ``memory``
    determined : Mapping[str, frozenset[str]]
        numbers of each of these parts that some row depends on
    """

    models: KernelModels
    rows: Mapping[str, tuple[MeasuredKernel, ...]]
    determined: Mapping[str, frozenset[str]]


def part_of(row: MeasuredKernel) -> str:
    """The part of a card that a row bears on: ``gemm.bf16``, ``attention.flash-2``, ``memory``."""
    if row.kind == "gemm":
        dtype = row.kernel.dtype
        return f"gemm.{'bf16' if ALIKE.get(dtype) == 'bf16' else dtype}"
    return f"attention.{row.kernel.form}" if row.kind == "attention" else "memory"


def calibrate_kernels(rows: Sequence[MeasuredKernel], start: KernelModels) -> Fitted:
    """Calibrate the numbers of one device.

    Least squares on the logarithm of time. Passes over memory come first, since rows of other kinds have some in them;
    then products by dtype, and attention by kernel. A part with fewer than 6 rows stays as it starts.

    Parameters
    ----------
    rows : Sequence[MeasuredKernel]
        of one device
    start : KernelModels
        where the search begins, and what each number is held near

    Raises
    ------
    ImportError
        when scipy is not installed
    """
    parts: dict[str, list[MeasuredKernel]] = {}
    for row in rows:
        parts.setdefault(part_of(row), []).append(row)
    models, used, determined = start, dict[str, tuple[MeasuredKernel, ...]](), dict[str, frozenset[str]]()
    for part in sorted(parts, key=lambda name: (name != "memory", name)):
        of = parts[part]
        if len(of) < _LEAST_ROWS:
            continue
        models, determined[part] = _fit_part(part, of, models, start.attention[start.usual_attention])
        used[part] = tuple(of)
    return Fitted(models=models, rows=used, determined=determined)


def errors(rows: Sequence[MeasuredKernel], models: KernelModels | None = None) -> Array:
    """Predicted over measured time, less 1, of each row, shape (num_rows,); with ``models`` in place of the GPU's."""
    found = np.empty(len(rows))
    for i, row in enumerate(rows):
        gpu = row.gpu if models is None else replace(row.gpu, kernels=models)
        found[i] = sum(_seconds(kernel, gpu) for kernel in row.kernels) / row.seconds - 1
    return found


def left_out_errors(rows: Sequence[MeasuredKernel], start: KernelModels, *, by: str = "shape", folds: int = 5) -> Array:
    """Errors of rows of one device under numbers that were calibrated without them, shape (num_rows,).

    Parameters
    ----------
    rows : Sequence[MeasuredKernel]
    start : KernelModels
        where every calibration begins; what is left of it where no other row bears on a part
    by : {"shape", "source"}
        what is left out together: ``folds`` lots of shapes, all rows of a shape in one (a GEMM's weight matrix, the
        tokens and heads of an attention kernel, the bytes of a pass), or all that one source published
    folds : int
        lots of shapes
    """
    lot = np.array(_lots(rows, folds) if by == "shape" else [row.row.source for row in rows])
    found = np.empty(len(rows))
    for fold in np.unique(lot).tolist():
        out = [row for row, of in zip(rows, lot.tolist(), strict=True) if of == fold]
        others = [row for row, of in zip(rows, lot.tolist(), strict=True) if of != fold]
        found[lot == fold] = errors(out, calibrate_kernels(others, start).models)
    return found


def _lots(rows: Sequence[MeasuredKernel], folds: int) -> list[int]:
    """The lot of each row: shapes are dealt at random, but always alike."""
    shapes = sorted({(part_of(row), row.shape) for row in rows})
    lots = np.random.default_rng(0).permutation(len(shapes)) % folds
    lot_of = dict(zip(shapes, lots.tolist(), strict=True))
    return [lot_of[part_of(row), row.shape] for row in rows]


def _seconds(kernel: Kernel, gpu: GPU) -> float:
    """As predicted; by the usual attention kernel where the device has no numbers of the one that was measured."""
    try:
        return kernel_cost(kernel, gpu).seconds
    except KeyError:
        return kernel_cost(replace(kernel, form=""), gpu).seconds


def _fit_part(
    part: str, rows: Sequence[MeasuredKernel], models: KernelModels, usual: AttentionModel
) -> tuple[KernelModels, frozenset[str]]:
    """One part's numbers, the others as they stand; an attention kernel that has none starts from ``usual``."""
    kind, _, name = part.partition(".")
    if kind == "memory":
        memory, felt = best(models.memory, rows, row_times.passes(rows))
        return replace(models, memory=memory), felt
    if kind == "gemm":
        start = models.gemm_of(name)[0]
        product, felt = best(start, rows, row_times.products(rows, models))
        return replace(models, gemm={**models.gemm, name: product}), felt
    attention, felt = best(models.attention.get(name, usual), rows, row_times.attention(rows, models))
    return replace(models, attention={**models.attention, name: attention}), felt
