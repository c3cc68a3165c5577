"""A GPU: what one device can do, without clock or wiring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from clustersim.hardware.checks import require_positive
from clustersim.hardware.kernel_models import KernelModels
from clustersim.hardware.power import Power
from clustersim.units import Unit

__all__ = ["GPU", "Efficiency"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency:
    """How much of a GPU's peaks its kernels reach, as saturating curves of their size.

    A GEMM of F [FLOP] reaches ``gemm_peak · F / (F + gemm_half_flops)`` of the dense peak; attention likewise; a pass
    over B bytes reaches ``memory_peak · B / (B + memory_half_bytes)`` of the memory bandwidth.

    Parameters
    ----------
    gemm_peak, attention_peak, memory_peak : float
        fraction of the peak that large kernels reach, in (0, 1]
    gemm_half_flops, attention_half_flops : float
        work at which half of that is reached [FLOP]
    memory_half_bytes : float
        bytes at which half of that is reached [B]
    gemm_peak_of, gemm_half_flops_of : Mapping[str, float]
        the two GEMM numbers of the dtypes that differ from the rest: fp8 reaches less of its peak than bf16, and later
    """

    gemm_peak: float
    gemm_half_flops: Annotated[float, Unit("FLOP")]
    attention_peak: float
    attention_half_flops: Annotated[float, Unit("FLOP")]
    memory_peak: float
    memory_half_bytes: Annotated[float, Unit("B")]
    gemm_peak_of: Mapping[str, float] = field(default_factory=dict)
    gemm_half_flops_of: Mapping[str, Annotated[float, Unit("FLOP")]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        peaks = {name: getattr(self, name) for name in ("gemm_peak", "attention_peak", "memory_peak")}
        halves = {
            name: getattr(self, name) for name in ("gemm_half_flops", "attention_half_flops", "memory_half_bytes")
        }
        peaks |= {f"gemm_peak_of.{dtype}": value for dtype, value in self.gemm_peak_of.items()}
        halves |= {f"gemm_half_flops_of.{dtype}": value for dtype, value in self.gemm_half_flops_of.items()}
        for name, value in peaks.items():
            if not 0 < value <= 1:
                raise ValueError(f"{name}: {value} must be a fraction in (0, 1]")
        for name, value in halves.items():
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name}: {value} must be zero or positive, and finite")

    def gemm(self, dtype: str) -> tuple[float, float]:
        """Peak fraction and half-reached work [FLOP] of a GEMM of ``dtype``."""
        return self.gemm_peak_of.get(dtype, self.gemm_peak), self.gemm_half_flops_of.get(dtype, self.gemm_half_flops)


@dataclass(frozen=True, kw_only=True, slots=True)
class GPU:
    """A GPU as its data sheet and micro-benchmarks describe it.

    Parameters
    ----------
    name : str
        card name, ``h100-sxm``
    memory_bytes : int
        device memory that a process can allocate from [B]
    memory_bandwidth : float
        HBM or GDDR peak, read plus write [B/s]
    tensor_flop_per_s : Mapping[str, float]
        dense matrix peak by dtype [FLOP/s]; a sparse peak is an error
    vector_flop_per_s : float
        fp32 peak of the vector units [FLOP/s]
    num_sms : int
        streaming multiprocessors or compute units
    accesses_per_s : float, optional
        that all SMs make to shared memory and its cache, an element each; None where it is not known, and products of
        operands that are not aligned take what aligned ones take [Hz]
    promotion_columns : int, optional
        of 8-bit operands, after which products that keep their sums in fp32 promote those of the matrix units; None
        where the matrix units sum in fp32
    crowding : float
        beside a collective that holds k of n SMs, SM-bound kernels last ``crowding`` k / (n - k) longer; 1 where all
        that they lose is SMs, more where they also meet in caches, or blocks that find no SM make a wave of their own
    exposed_read_back : float
        how much of the time in which products read the sums that they add to no main loop hides, from 0 to 1
    launch_latency : float
        from one dependent kernel to the next on a stream [s]
    efficiency : Efficiency
        of kernels without a shape, and of all where ``kernels`` is None
    kernels : KernelModels, optional
        what its kernels take by their shapes
    power : Power, optional
        what lowers its clock; None where it is not known, and the clock stays
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``

    Raises
    ------
    ValueError
        if a rate, a size or a count is not positive and finite
    """

    name: str
    memory_bytes: Annotated[int, Unit("B")]
    memory_bandwidth: Annotated[float, Unit("B/s")]
    tensor_flop_per_s: Mapping[str, Annotated[float, Unit("FLOP/s")]]
    vector_flop_per_s: Annotated[float, Unit("FLOP/s")]
    num_sms: int
    launch_latency: Annotated[float, Unit("s")]
    efficiency: Efficiency
    accesses_per_s: Annotated[float | None, Unit("Hz")] = None
    promotion_columns: int | None = None
    exposed_read_back: float = 0.0
    crowding: float = 1.0
    kernels: KernelModels | None = None
    power: Power | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sizes = ("memory_bytes", "memory_bandwidth", "vector_flop_per_s", "num_sms")
        require_positive(self, *sizes, "launch_latency", "crowding")
        if self.accesses_per_s is not None:
            require_positive(self, "accesses_per_s")
        if self.promotion_columns is not None:
            require_positive(self, "promotion_columns")
        if not 0 <= self.exposed_read_back <= 1:
            raise ValueError(f"exposed_read_back: {self.exposed_read_back} must be from 0 to 1")
        for dtype, rate in self.tensor_flop_per_s.items():
            if not 0 < rate < float("inf"):
                raise ValueError(f"tensor_flop_per_s.{dtype}: {rate} must be positive and finite")

    def flop_per_s(self, dtype: str) -> float:
        """Dense peak of the units that multiply ``dtype`` [FLOP/s].

        Raises
        ------
        KeyError
            when the device has no such units
        """
        if dtype == "fp32" and "fp32" not in self.tensor_flop_per_s:
            return self.vector_flop_per_s
        if dtype not in self.tensor_flop_per_s:
            raise KeyError(f"{self.name} has no {dtype} matrix units, only {', '.join(self.tensor_flop_per_s)}")
        return self.tensor_flop_per_s[dtype]

    def at_clock(self, clock: float) -> GPU:
        """The same device at a part of its full clock: all that it computes is slower, its memory is not."""
        if clock == 1:
            return self
        matrix = {dtype: rate * clock for dtype, rate in self.tensor_flop_per_s.items()}
        accesses = None if self.accesses_per_s is None else self.accesses_per_s * clock
        vector = self.vector_flop_per_s * clock
        return replace(self, tensor_flop_per_s=matrix, vector_flop_per_s=vector, accesses_per_s=accesses)
