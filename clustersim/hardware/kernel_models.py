"""The kernel models of a device: products by dtype, attention by kernel, passes over memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clustersim.hardware.attention_model import AttentionModel
from clustersim.hardware.gemm_model import GemmModel
from clustersim.hardware.memory_model import MemoryModel

__all__ = ["ALIKE", "SIBLINGS", "KernelModels"]

ALIKE: Mapping[str, str] = {"fp16": "bf16", "tf32": "bf16", "mxfp8": "fp8", "nvfp4": "fp8"}
"""dtype -> the one whose fractions it takes where a card has none of its own. fp16 and bf16 run at the same rate on the
same units, so their measurements count as one; the others are assumed."""

_SAME = ("fp16",)

SIBLINGS: Mapping[str, float] = {"gemm": 0.15, "attention": 0.20, "memory": 0.26}
"""Kind of kernel -> how far off a device's kernels are when predicted by the numbers of another, as a standard
deviation of the logarithm of time: the median over pairs of devices that were measured, peaks and bandwidth being the
row's own. ``clustersim calibrate kernels`` prints these three."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelModels:
    """What micro-benchmarks of kernels say of a device.

    Parameters
    ----------
    name : str
        card name, ``h100-sxm``
    gemm : Mapping[str, GemmModel]
        by dtype
    attention : Mapping[str, AttentionModel]
        by kernel: ``flash-2``, ``flash-3``, ``cudnn``, ``trtllm``
    usual_attention : str
        the one that a kernel without a form is
    memory : MemoryModel
    residual : Mapping[str, float]
        part of the card, ``gemm.bf16``, ``attention.flash-2`` or ``memory`` -> how far the kernels that it was
        calibrated by are from its numbers, as a standard deviation of the logarithm of time
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``

    Raises
    ------
    ValueError
        when the usual attention kernel is not among them, there is no GEMM, or a residual is negative or of no kind
    """

    name: str
    gemm: Mapping[str, GemmModel]
    attention: Mapping[str, AttentionModel]
    usual_attention: str
    memory: MemoryModel
    residual: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.gemm:
            raise ValueError("gemm: {} must have the numbers of one dtype at least")
        if self.usual_attention not in self.attention:
            known = ", ".join(self.attention)
            raise ValueError(f"usual_attention: {self.usual_attention} must be one of the attention kernels: {known}")
        for part, spread in self.residual.items():
            if part.partition(".")[0] not in SIBLINGS:
                raise ValueError(f"residual: {part} must be of one of {', '.join(SIBLINGS)}")
            if not 0 <= spread < float("inf"):
                raise ValueError(f"residual.{part}: {spread} must be zero or positive, and finite")

    def gemm_of(self, dtype: str) -> tuple[GemmModel, str]:
        """The model of products of ``dtype`` and the key of its sources, empty where it is another dtype's.

        A dtype without numbers takes those of one like it (:data:`ALIKE`), and failing that of the first there is.
        """
        alike = next((d for d in (dtype, ALIKE.get(dtype, "")) if d in self.gemm), "")
        if not alike:
            return next(iter(self.gemm.values())), ""
        return self.gemm[alike], f"gemm.{alike}" if alike == dtype or dtype in _SAME else ""

    def attention_of(self, form: str) -> tuple[AttentionModel, str]:
        """The model of an attention kernel and the key of its sources.

        Raises
        ------
        KeyError
            when this device has no numbers of such a kernel
        """
        name = form or self.usual_attention
        if name not in self.attention:
            raise KeyError(f"{self.name} has no attention kernel {name}, only {', '.join(self.attention)}")
        return self.attention[name], f"attention.{name}"

    def spread_of(self, key: str, kind: str, *, measured: bool) -> float:
        """How far off a kernel may be, as a standard deviation of the logarithm of its time.

        Parameters
        ----------
        key : str
            of its sources, as :meth:`gemm_of` and :meth:`attention_of` give it
        kind : {"gemm", "attention", "memory"}
        measured : bool
            whether its numbers were measured, on this device; if not, at least as far as kernels of :data:`SIBLINGS`
        """
        own = next((self.residual[part] for part in self.residual if f"{key}.".startswith(f"{part}.")), None)
        if measured and own is not None:
            return own
        return max(own or 0.0, SIBLINGS[kind])
