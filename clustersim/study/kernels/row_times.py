"""Times of measured kernels of one device as functions of the numbers of a kernel model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.attention_model import AttentionModel
from clustersim.hardware.gemm_model import GemmModel
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_models import KernelModels
from clustersim.hardware.memory_model import MemoryModel
from clustersim.study.kernels.measured import MeasuredKernel

__all__ = ["attention", "passes", "products"]

Array = NDArray[np.float64]


def products(rows: Sequence[MeasuredKernel], models: KernelModels) -> Callable[[GemmModel], Array]:
    """Numbers of products -> time of each row [s], shape (num_rows,); other kernels of a row as ``models`` has them."""
    gpu, beside = _beside(rows, models)
    shapes = _columns([row.kernel for row in rows], "m", "n", "k", "batch", "nbytes")
    peak = np.array([row.gpu.flop_per_s(row.kernel.dtype) for row in rows])

    def seconds(model: GemmModel) -> Array:
        times = model.times(*shapes, flop_per_s=peak, num_sms=gpu.num_sms, memory_bandwidth=gpu.memory_bandwidth)
        return beside + times.total

    return seconds


def attention(rows: Sequence[MeasuredKernel], models: KernelModels) -> Callable[[AttentionModel], Array]:
    """Numbers of an attention kernel -> time of each row [s], shape (num_rows,); others as ``models`` has them."""
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


def passes(rows: Sequence[MeasuredKernel]) -> Callable[[MemoryModel], Array]:
    """Numbers of passes over memory -> time of each row [s], shape (num_rows,)."""
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
