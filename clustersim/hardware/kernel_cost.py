"""The kernel cost model: products by tiles and waves, attention by blocks, passes over memory by their kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.alignment import element_load
from clustersim.hardware.attention_model import AttentionModel
from clustersim.hardware.dropped_attention import drawing
from clustersim.hardware.gemm_model import GemmModel
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Bound, Cost, Kernel
from clustersim.hardware.kernel_models import KernelModels
from clustersim.hardware.memory_model import MemoryModel
from clustersim.hardware.promotion import promotion
from clustersim.hardware.roofline import roofline

__all__ = ["kernel_cost"]

_NUM_SHAPES = 2**16
"""Shapes whose times are kept; a run of a large model asks for some hundreds."""


def kernel_cost(kernel: Kernel, gpu: GPU) -> Cost:
    """Seconds of a kernel that has the GPU to itself.

    With the device's :class:`~clustersim.hardware.kernel_models.KernelModels`, what :class:`~clustersim.hardware.
    gemm_model.GemmModel`, :class:`~clustersim.hardware.attention_model.AttentionModel` and
    :class:`~clustersim.hardware.memory_model.MemoryModel` say, and the device's launch latency. A GPU without kernel
    models, and a product or an attention kernel without a shape (of a table of ops, say), take
    :func:`~clustersim.hardware.roofline.roofline`.

    Parameters
    ----------
    kernel : Kernel
    gpu : GPU

    Returns
    -------
    Cost
        of all ``count`` launches. ``provenance`` is ``modelled`` where the numbers of that kind and dtype were measured
        on this device, ``assumed`` where one of them was borrowed or guessed. ``spread`` is the residual of the part of
        the card that they stand in, and where they were borrowed at least that between devices.

    Raises
    ------
    KeyError
        when the device has no units for the kernel's dtype, or no numbers of a kernel of such a form
    """
    models = gpu.kernels
    if models is None and kernel.kind == "attention" and kernel.form:
        raise KeyError(f"{gpu.name} has no kernel models, which tell attention kernels such as {kernel.form} apart")
    if models is None or (kernel.kind != "memory" and not (kernel.m and kernel.n and kernel.k and kernel.batch)):
        return roofline(kernel, gpu)
    if kernel.kind == "gemm":
        return _gemm(kernel, gpu, models)
    return _attention(kernel, gpu, models) if kernel.kind == "attention" else _memory(kernel, gpu, models)


def _gemm(kernel: Kernel, gpu: GPU, models: KernelModels) -> Cost:
    model, key = models.gemm_of(kernel.dtype)
    if kernel.form:
        model, key = replace(model, memory_fraction=models.memory.fraction(kernel.form)), f"memory.{kernel.form}"
    shape = (kernel.m, kernel.n, kernel.k, kernel.batch, kernel.nbytes)
    device = (gpu.flop_per_s(kernel.dtype), gpu.num_sms, gpu.memory_bandwidth)
    beside = (element_load(kernel, gpu), promotion(kernel, gpu))
    compute, memory, total = _gemm_seconds(model, *shape, *device, *beside)
    behind = gpu.exposed_read_back * kernel.read_back / (gpu.memory_bandwidth * model.memory_fraction)
    return _cost(kernel, gpu, models, compute + behind, memory, total + behind, key)


def _attention(kernel: Kernel, gpu: GPU, models: KernelModels) -> Cost:
    model, key = models.attention_of(kernel.form)
    shape = (kernel.m, kernel.n, kernel.k, kernel.batch, kernel.flops, kernel.nbytes, kernel.backward)
    device = (gpu.flop_per_s(kernel.dtype), gpu.num_sms, gpu.memory_bandwidth)
    compute, memory, total = _attention_seconds(model, *shape, *device)
    start = total - max(compute, memory)
    compute *= drawing(kernel)
    total = start + max(compute, memory)
    measured = f"{key}.backward" if kernel.backward else key
    return _cost(kernel, gpu, models, compute, memory, total, measured)


def _memory(kernel: Kernel, gpu: GPU, models: KernelModels) -> Cost:
    compute = kernel.flops / gpu.vector_flop_per_s
    memory = _pass_seconds(models.memory, kernel.nbytes, kernel.form, gpu.memory_bandwidth)
    key = f"memory.{kernel.form or 'elementwise'}"
    return _cost(kernel, gpu, models, compute, memory, models.memory.start_latency + max(compute, memory), key)


def _cost(
    kernel: Kernel, gpu: GPU, models: KernelModels, compute: float, memory: float, total: float, key: str
) -> Cost:
    """``total`` [s] and the device's launch latency, for all launches; ``key`` of the sources of the numbers."""
    matrix = kernel.kind != "memory" and kernel.dtype in gpu.tensor_flop_per_s
    units: Bound = "tensor" if matrix else "vector"
    terms: dict[Bound, float] = {
        units: compute,
        "hbm": memory,
        "launch": gpu.launch_latency + total - max(compute, memory),
    }
    measured = bool(key) and _is_measured(gpu, models.sources, key)
    return Cost(
        seconds=kernel.count * (gpu.launch_latency + total),
        bound=max(terms, key=terms.__getitem__),
        provenance="modelled" if measured else "assumed",
        spread=models.spread_of(key, kernel.kind, measured=measured),
    )


@lru_cache(maxsize=_NUM_SHAPES)
def _pass_seconds(model: MemoryModel, nbytes: int, form: str, memory_bandwidth: float) -> float:
    return float(model.seconds(_array(nbytes), _array(model.fraction(form)), memory_bandwidth))


@lru_cache(maxsize=_NUM_SHAPES)
def _gemm_seconds(
    model: GemmModel,
    m: int,
    n: int,
    k: int,
    batch: int,
    nbytes: int,
    flop_per_s: float,
    num_sms: int,
    memory_bandwidth: float,
    element_load: float,
    promotion: float,
) -> tuple[float, float, float]:
    times = model.times(
        _array(m),
        _array(n),
        _array(k),
        _array(batch),
        _array(nbytes),
        flop_per_s=flop_per_s,
        num_sms=num_sms,
        memory_bandwidth=memory_bandwidth,
        element_load=element_load,
        promotion=promotion,
    )
    return float(times.compute), float(times.memory), float(times.total)


@lru_cache(maxsize=_NUM_SHAPES)
def _attention_seconds(
    model: AttentionModel,
    queries: int,
    keys: int,
    head_dim: int,
    heads: int,
    flops: int,
    nbytes: int,
    backward: bool,
    flop_per_s: float,
    num_sms: int,
    memory_bandwidth: float,
) -> tuple[float, float, float]:
    times = model.times(
        _array(queries),
        _array(keys),
        _array(head_dim),
        _array(heads),
        _array(flops),
        _array(nbytes),
        np.array(backward),
        flop_per_s=flop_per_s,
        num_sms=num_sms,
        memory_bandwidth=memory_bandwidth,
    )
    return float(times.compute), float(times.memory), float(times.total)


def _array(value: float) -> NDArray[np.float64]:
    return np.array(value, dtype=np.float64)


def _is_measured(gpu: GPU, sources: Mapping[str, str], key: str) -> bool:
    """Whether the numbers under ``key`` were measured, and on this device rather than on one like it."""
    own = gpu.sources.get("kernels", "")
    source = next((sources[k] for k in _ancestors(key) if k in sources), "")
    return source.startswith("measured") and not own.startswith("assumed")


def _ancestors(key: str) -> Iterator[str]:
    """A dotted key and the tables above it, innermost first."""
    while key:
        yield key
        key = key.rpartition(".")[0]
