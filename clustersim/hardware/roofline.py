"""The first kernel cost model: a roofline whose two roofs rise with the size of the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clustersim.hardware.dropped_attention import drawing
from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Bound, Cost, Kernel, Provenance

__all__ = ["SPREAD", "roofline"]

SPREAD: Mapping[str, float] = {"gemm": 0.18, "attention": 0.34, "memory": 0.27}
"""Kind of kernel -> how far off its time may be, as a standard deviation of its logarithm: the median over pairs of
devices of the measured kernels of one under the curves of the other, as in
:data:`clustersim.hardware.kernel_models.SIBLINGS`."""


def roofline(kernel: Kernel, gpu: GPU) -> Cost:
    """Seconds of a kernel that has the GPU to itself.

    With F [FLOP] and B [B] of one launch, P the dense peak of the units that multiply the kernel's dtype [FLOP/s], W
    the memory bandwidth [B/s], and e, h the peak fraction and half-reached size of :class:`~clustersim.hardware.gpu.
    Efficiency`::

        t_compute = F / (P · e_F · F / (F + h_F)) = (F + h_F) / (P · e_F)
        t_memory  = B / (W · e_B · B / (B + h_B)) = (B + h_B) / (W · e_B)
        seconds   = count · (max(t_compute, t_memory) + launch_latency)

    Attention that drops weights computes :func:`~clustersim.hardware.dropped_attention.drawing` times as long.
    A kernel without FLOP (or bytes) has no such term. A ``memory`` kernel computes on the vector units at their peak,
    e_F = 1 and h_F = 0. An fp32 product on a GPU without fp32 matrix units runs on the vector units.

    Parameters
    ----------
    kernel : Kernel
    gpu : GPU

    Returns
    -------
    Cost
        ``bound`` is the largest of the three terms. ``provenance`` is ``modelled`` where the constants of that term
        were measured on this device, ``assumed`` where one of them was borrowed or guessed.

    Raises
    ------
    KeyError
        when the device has no units for the kernel's dtype

    References
    ----------
    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009. The saturating roofs are this project's: a fixed time of
    h / (P · e) stands for the ramp of tiles, waves and prologue.
    """
    compute, units, behind_compute = _compute(kernel, gpu)
    memory = _saturating(
        kernel.nbytes, gpu.memory_bandwidth, gpu.efficiency.memory_peak, gpu.efficiency.memory_half_bytes
    )
    terms: dict[Bound, tuple[float, tuple[str, ...]]] = {
        units: (compute, behind_compute),
        "hbm": (memory, ("efficiency.memory_peak", "efficiency.memory_half_bytes")),
        "launch": (gpu.launch_latency, ("launch_latency",)),
    }
    bound = max(terms, key=lambda name: terms[name][0])
    measured = all(_is_measured(gpu.sources, key) for key in terms[bound][1])
    provenance: Provenance = "modelled" if measured else "assumed"
    seconds = kernel.count * (max(compute, memory) + gpu.launch_latency)
    return Cost(seconds=seconds, bound=bound, provenance=provenance, spread=SPREAD[kernel.kind])


def _compute(kernel: Kernel, gpu: GPU) -> tuple[float, Bound, tuple[str, ...]]:
    """Compute time [s], the units that spend it, and the card's keys behind it."""
    if kernel.kind == "memory":
        return kernel.flops / gpu.vector_flop_per_s, "vector", ("vector_flop_per_s",)
    rate = gpu.flop_per_s(kernel.dtype)
    if kernel.kind == "gemm":
        peak, half = gpu.efficiency.gemm(kernel.dtype)
        own = f"_of.{kernel.dtype}" if kernel.dtype in gpu.efficiency.gemm_peak_of else ""
        keys = (f"efficiency.gemm_peak{own}", f"efficiency.gemm_half_flops{own}")
    else:
        peak, half = gpu.efficiency.attention_peak, gpu.efficiency.attention_half_flops
        keys = ("efficiency.attention_peak", "efficiency.attention_half_flops")
    units: Bound = "tensor" if kernel.dtype in gpu.tensor_flop_per_s else "vector"
    return drawing(kernel) * _saturating(kernel.flops, rate, peak, half), units, keys


def _saturating(work: float, rate: float, peak: float, half: float) -> float:
    """Time of ``work`` at ``rate · peak · work / (work + half)`` [s]."""
    return (work + half) / (rate * peak) if work else 0.0


def _is_measured(sources: Mapping[str, str], key: str) -> bool:
    """Whether the card says that the value under ``key``, or the table above it, was measured."""
    source = next((sources[k] for k in _ancestors(key) if k in sources), "")
    return source.startswith("measured")


def _ancestors(key: str) -> Iterator[str]:
    """A dotted key and the tables above it, innermost first."""
    while key:
        yield key
        key = key.rpartition(".")[0]
