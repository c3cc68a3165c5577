"""A kernel: the work of one launch on a GPU, in FLOP and bytes, never in seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from clustersim.hardware.gpu import GPU
from clustersim.units import Unit

__all__ = ["Bound", "Cost", "CostModel", "Kernel", "KernelKind", "Provenance"]

KernelKind = Literal["gemm", "attention", "memory"]
Bound = Literal["tensor", "vector", "hbm", "launch"]
Provenance = Literal["measured", "interpolated", "modelled", "assumed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """The work of one kernel launch.

    Parameters
    ----------
    kind : {"gemm", "attention", "memory"}
        what does the work: matrix units on a dense product, a fused attention kernel, or a pass over memory
    dtype : str
        ``fp32``, ``tf32``, ``fp16``, ``bf16``, ``fp8``, ``mxfp8``, ``nvfp4``: the type of the operands
    flops : int
        floating-point operations [FLOP]; a multiply-add counts two
    nbytes : int
        bytes read and written in HBM [B], each operand once
    m, n, k, batch : int
        shape of a GEMM, ``batch`` products of (m × k)·(k × n) in one launch; of an attention kernel, m queries of a
        sequence that meet at most n keys, k columns of a head, ``batch`` heads of all sequences; 0 where the kind has
        none
    count : int
        identical launches, one after the other
    looped : int
        launches beyond the first that one call makes for it, in a loop over experts
    form : str
        which kernel of its kind, where one name is not enough: of a pass over memory ``norm``, ``softmax``,
        ``activation``, ``rope`` or ``scan``, of attention ``flash-2``, ``cudnn`` and so on, of a product ``scan`` for
        small ones inside the kernels of a recurrence; empty for the usual one
    backward : bool
        of attention: the kernel of the gradients
    dropout : bool
        of attention: it drops some weights by numbers that it draws itself
    aligned : bool
        of a GEMM: the contiguous sides of operands and result are multiples of 16 bytes
    promoted : bool
        of a GEMM with 8-bit operands: its sums are kept in fp32 all along, which some devices pay for
    read_back : int
        of a GEMM that adds to what stands there, as weight gradients do: what it reads of that, part of ``nbytes`` [B]
    """

    kind: KernelKind
    dtype: str
    flops: Annotated[int, Unit("FLOP")]
    nbytes: Annotated[int, Unit("B")]
    m: int = 0
    n: int = 0
    k: int = 0
    batch: int = 1
    count: int = 1
    looped: int = 0
    form: str = ""
    backward: bool = False
    dropout: bool = False
    aligned: bool = True
    promoted: bool = False
    read_back: Annotated[int, Unit("B")] = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a kernel takes alone on a GPU.

    Parameters
    ----------
    seconds : float
        duration of all ``count`` launches [s]
    bound : {"tensor", "vector", "hbm", "launch"}
        what sets the duration
    provenance : {"measured", "interpolated", "modelled", "assumed"}
        where the number comes from; ``assumed`` if any constant behind it is
    spread : float
        how far the truth may be from ``seconds``, as a standard deviation of its logarithm; 0 where the model does not
        say. Kernels of one kind and dtype on one device are taken to be off by one and the same factor
    """

    seconds: Annotated[float, Unit("s")]
    bound: Bound
    provenance: Provenance
    spread: float = 0.0


CostModel = Callable[[Kernel, GPU], Cost]
"""The seam: any callable of this shape can stand in for :func:`clustersim.hardware.kernel_cost.kernel_cost`."""
