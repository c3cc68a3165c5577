"""Measured kernels -> the numbers of a device's kernel models under which they come out best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.attention_model import AttentionModel
from clustersim.hardware.gemm_model import GemmModel
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_models import ALIKE, KernelModels
from clustersim.hardware.memory_model import FORMS, MemoryModel
from clustersim.study.kernels.measured import MeasuredKernel

__all__ = ["Fitted", "calibrate_kernels", "errors", "left_out_errors", "part_of"]

Model = TypeVar("Model", GemmModel, AttentionModel, MemoryModel)
Array = NDArray[np.float64]

_LEAST_ROWS = 6
"""Rows of a dtype or of an attention kernel below which its numbers stay those of the start."""

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
        memory, felt = _best(models.memory, rows, _passes(rows))
        return replace(models, memory=memory), felt
    if kind == "gemm":
        start = models.gemm_of(name)[0]
        product, felt = _best(start, rows, _products(rows, models))
        return replace(models, gemm={**models.gemm, name: product}), felt
    attention, felt = _best(models.attention.get(name, usual), rows, _attention(rows, models))
    return replace(models, attention={**models.attention, name: attention}), felt


def _products(rows: Sequence[MeasuredKernel], models: KernelModels) -> Callable[[GemmModel], Array]:
    gpu, beside = _beside(rows, models)
    shapes = _columns([row.kernel for row in rows], "m", "n", "k", "batch", "nbytes")
    peak = np.array([row.gpu.flop_per_s(row.kernel.dtype) for row in rows])

    def seconds(model: GemmModel) -> Array:
        times = model.times(*shapes, flop_per_s=peak, num_sms=gpu.num_sms, memory_bandwidth=gpu.memory_bandwidth)
        return beside + times.total

    return seconds


def _attention(rows: Sequence[MeasuredKernel], models: KernelModels) -> Callable[[AttentionModel], Array]:
    gpu, beside = _beside(rows, models)
    pairs = [(i, kernel) for i, row in enumerate(rows) for kernel in row.kernels if kernel.kind == "attention"]
    index = np.array([i for i, _ in pairs])
    kernels = [kernel for _, kernel in pairs]
    queries, keys, head_dim, heads, flops, nbytes = _columns(kernels, "m", "n", "k", "batch", "flops", "nbytes")
    backward = np.array([kernel.backward for kernel in kernels])
    peak = gpu.flop_per_s(kernels[0].dtype)

    def seconds(model: AttentionModel) -> Array:
        times = model.times(
            queries,
            keys,
            head_dim,
            heads,
            flops,
            nbytes,
            backward,
            flop_per_s=peak,
            num_sms=gpu.num_sms,
            memory_bandwidth=gpu.memory_bandwidth,
        )
        return beside + np.bincount(index, weights=times.total, minlength=len(rows))

    return seconds


def _passes(rows: Sequence[MeasuredKernel]) -> Callable[[MemoryModel], Array]:
    gpu = rows[0].gpu
    nbytes = np.array([float(row.kernel.nbytes) for row in rows])
    forms = [row.kernel.form for row in rows]

    def seconds(model: MemoryModel) -> Array:
        fraction = np.array([model.fraction(form) for form in forms])
        return gpu.launch_latency + model.start_latency + model.seconds(nbytes, fraction, gpu.memory_bandwidth)

    return seconds


def _beside(rows: Sequence[MeasuredKernel], models: KernelModels) -> tuple[GPU, Array]:
    """The GPU, and of each row the launches of what it is named for and the other kernels timed with it [s]."""
    gpu = replace(rows[0].gpu, kernels=models)
    beside = [
        sum(
            gpu.launch_latency if kernel.kind == row.kind else kernel_cost(kernel, gpu).seconds
            for kernel in row.kernels
        )
        for row in rows
    ]
    return gpu, np.array(beside)


def _columns(kernels: Sequence[Kernel], *names: str) -> list[Array]:
    return [np.array([float(getattr(kernel, name)) for kernel in kernels]) for name in names]


def _best(
    start: Model, rows: Sequence[MeasuredKernel], seconds: Callable[[Model], Array]
) -> tuple[Model, frozenset[str]]:
    """The numbers under which the rows come out best, and those of them that some row depends on."""
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
