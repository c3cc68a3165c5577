"""Measured kernels as published -> the GPU they ran on and the launches that the time is of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel, KernelKind
from clustersim.library.part import load_part
from clustersim.readers.kernel_rows import KernelRow
from clustersim.study.hardware_words import has_words
from clustersim.study.kernels.launches import launches_of

__all__ = ["REASONS", "MeasuredKernel", "UnusedKernel", "place"]

_MACHINES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("a100-pcie",), "a100-pcie-80gb"),
    (("a100", "40gb"), "a100-sxm-40gb"),
    (("a100",), "a100-sxm-80gb"),
    (("a40",), "a40"),
    (("gb200",), "gb200"),
    (("gb300",), "gb300"),
    (("gh200", "141gb"), "gh200-144gb"),
    (("gh200",), "gh200"),
    (("b200",), "b200"),
    (("b300",), "b300"),
    (("h100 pcie",), ""),
    (("h100",), "h100-sxm"),
    (("h200",), "h200-sxm"),
    (("h800",), "h800-sxm"),
    (("l40s",), "l40s"),
    (("l40",), ""),
    (("l4",), "l4"),
    (("v100-pcie",), "v100-pcie"),
    (("mi210",), "mi210"),
    (("mi355x",), "mi355x"),
)
"""Words that a description of the hardware has -> the card that stands for it, the first that fits; empty where none
does. ``MoE`` nodes of several GPUs are left out."""

_DTYPES = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "fp16",
    "fp32 (simt / tf32 off)": "fp32",
    "fp64": "fp64",
    "fp8": "fp8",
    "mxfp8": "mxfp8",
    "fp8 e4m3": "fp8",
    "fp8 (block scaled)": "fp8",
    "fp8 (block scaled, bf16 out)": "fp8",
}

_IN_SEQUENCE = ("Vidur",)
"""Sources that time kernels as they follow each other in a model, on a device that is busy throughout: at the clock
that its power limit leaves. The others time one kernel alone."""

REASONS = (
    "no card of the hardware",
    "low confidence",
    "not one kernel of one GPU",
    "no shape",
    "forward or backward is not told",
    "a sequence of kernels whose number is not told",
    "its unit is none of ms, TB/s and TFLOP/s, or not of such a kernel",
    "above the dense peak of the device",
)
"""Why a row cannot be predicted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredKernel:
    """A row and what it measured.

    Parameters
    ----------
    row : KernelRow
    gpu : GPU
        the card's, at the clock that the row was measured at
    kind : {"gemm", "attention", "memory"}
        what it is counted among
    kernels : tuple[Kernel, ...]
        launches, one after the other, whose times are in the measured one
    seconds : float
        measured [s]
    """

    row: KernelRow
    gpu: GPU
    kind: KernelKind
    kernels: tuple[Kernel, ...]
    seconds: float

    @property
    def kernel(self) -> Kernel:
        """The launch that the row is named for."""
        return next(kernel for kernel in self.kernels if kernel.kind == self.kind)

    @property
    def shape(self) -> tuple[int, ...]:
        """What rows that are left out together have in common: the weight matrix, tokens and heads, the bytes."""
        kernel = self.kernel
        if self.kind == "gemm":
            return (kernel.n, kernel.k)
        return (kernel.m, kernel.batch) if self.kind == "attention" else (kernel.nbytes,)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnusedKernel:
    """A row that cannot be predicted, with one of :data:`REASONS`."""

    row: KernelRow
    reason: str


def place(rows: Iterable[KernelRow]) -> tuple[list[MeasuredKernel], list[UnusedKernel]]:
    """Rows whose kernels are known, and the others with the reason."""
    used, unused = [], []
    for row in rows:
        placed = _place(row)
        if isinstance(placed, str):
            unused.append(UnusedKernel(row=row, reason=placed))
        else:
            used.append(placed)
    return used, unused


def _place(row: KernelRow) -> MeasuredKernel | str:
    card = next((card for words, card in _MACHINES if has_words(row.hardware, words)), "")
    dtype = _DTYPES.get(row.dtype.lower(), "")
    if row.op.startswith("MoE") or row.hardware.startswith("8x"):
        return "not one kernel of one GPU"
    if not card or not dtype:
        return "no card of the hardware"
    if row.confidence == "low":
        return "low confidence"
    kind: KernelKind = "gemm" if "gemm" in row.op else "attention" if "attention" in row.op else "memory"
    kernels = launches_of(row, kind, dtype)
    if isinstance(kernels, str):
        return kernels
    seconds = _seconds(row, kernels)
    if not seconds:
        return "its unit is none of ms, TB/s and TFLOP/s, or not of such a kernel"
    gpu = _gpu(card)
    if seconds < _seconds_at_peak(gpu, kernels):
        return "above the dense peak of the device"
    if row.source.startswith(_IN_SEQUENCE):
        gpu = gpu.at_clock(_clock(gpu, kernels, seconds))
    return MeasuredKernel(row=row, gpu=gpu, kind=kind, kernels=kernels, seconds=seconds)


def _seconds_at_peak(gpu: GPU, kernels: tuple[Kernel, ...]) -> float:
    """Of the FLOP of matrix units; 0 on a device that has none of the format, which is told elsewhere [s]."""
    try:
        return sum(k.count * k.flops / gpu.flop_per_s(k.dtype) for k in kernels if k.kind != "memory")
    except KeyError:
        return 0.0


def _clock(gpu: GPU, kernels: tuple[Kernel, ...], seconds: float) -> float:
    """The clock that the power limit leaves beside kernels which keep the device busy."""
    if gpu.power is None:
        return 1.0
    matrix_j = sum(
        gpu.power.matrix_j(k.kind, k.dtype, k.count * k.flops / gpu.flop_per_s(k.dtype), k.form)
        for k in kernels
        if k.kind != "memory"
    )
    memory_s = sum(k.count * k.nbytes for k in kernels) / gpu.memory_bandwidth
    return gpu.power.clock_when(matrix_j=matrix_j, memory_s=memory_s, seconds=seconds)


@cache
def _gpu(card: str) -> GPU:
    return load_part("gpu", card)


def _seconds(row: KernelRow, kernels: tuple[Kernel, ...]) -> float:
    """Measured time: milliseconds as published, or from a rate of the FLOP or bytes; 0 where the unit tells neither."""
    if row.unit == "ms":
        return row.value / 1e3
    if row.unit == "TB/s":
        return sum(kernel.nbytes for kernel in kernels) / (row.value * 1e12)
    if row.unit.startswith("TFLOP/s"):
        return sum(kernel.flops for kernel in kernels) / (row.value * 1e12)
    return 0.0
