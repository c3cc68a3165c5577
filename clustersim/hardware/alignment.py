"""What a product pays where its operands do not stand at multiples of 16 bytes."""

from __future__ import annotations

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel

__all__ = ["VECTOR", "element_load", "is_aligned"]

VECTOR = 8
"""16-bit elements of 16 bytes: what one thread copies at once from memory to shared memory."""

_SIXTEEN_BIT = ("fp16", "bf16")

_PASSES = 2
"""Accesses of an element: from memory to a register, and from there to shared memory."""


def is_aligned(*sides: int) -> bool:
    """Whether contiguous sides are whole vectors of 16-bit elements.

    >>> is_aligned(2048, 224), is_aligned(2048, 225)
    (True, False)
    """
    return not any(side % VECTOR for side in sides)


def element_load(kernel: Kernel, gpu: GPU) -> float:
    """What an SM takes for an element of an operand beside its matrix units; 0 for aligned operands [s].

    Operands whose rows stand at multiples of 16 bytes are copied to shared memory beside the matrix units. Others are
    multiplied by kernels of an older kind, without such copies: each element is loaded into a register and stored to
    shared memory by itself, and neither is hidden. With N SMs that make A accesses a second::

        element_load = 2 · N / A

    Only 16-bit operands are told apart, and only on devices whose accesses are known.

    Notes
    -----
    Nothing here is calibrated. On an A100, 384 products of 1024 x 140 x 1024 take 1.31 ms with cuBLAS of CUDA 11.7
    (PyTorch issue 83272); this says 1.34 ms, and 0.94 ms if they were aligned. CUDA 11.6 took 2.09 ms in fp16 and 9.23
    ms in bf16: versions before 11.7 are not told apart, and may be slower. On an RTX 4090 odd sides near 2056 take
    ``cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1`` and reach 0.71 of what 2040 reaches (PyTorch issue
    181718); for such a tile with 32 accesses a cycle this says 0.67.

    References
    ----------
    NVIDIA, Matrix Multiplication Background User's Guide, section 2.2: multiples of 16 bytes. PTX ISA, ``cp.async``:
    copies of 4, 8 and 16 bytes. CUDA C++ Programming Guide: 32 banks of shared memory serve 4 bytes each a cycle.
    """
    if kernel.aligned or gpu.accesses_per_s is None or kernel.dtype not in _SIXTEEN_BIT:
        return 0.0
    return _PASSES * gpu.num_sms / gpu.accesses_per_s
