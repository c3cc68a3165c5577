"""What products of 8-bit operands pay where their sums are kept in fp32."""

from __future__ import annotations

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel

__all__ = ["promotion"]

_EIGHT_BIT = ("fp8",)

_ADDITION = 2
"""FLOP of a multiply-add, which an addition takes the place of: vector peaks count two."""


def promotion(kernel: Kernel, gpu: GPU) -> float:
    """What an SM takes to promote an element of a tile, for each column of the operands; 0 for other products [s].

    Matrix units of Hopper sum products of 8-bit operands in fewer bits than fp32 has. Where a product asks for it
    (split accumulation; cuBLAS without fast accumulation), vector units add what they have summed to a second set of
    sums, in fp32, after every C columns. With N SMs of V vector FLOP/s in all, the matrix units waiting meanwhile::

        promotion = 2 · N / (V · C)

    Nothing is promoted on devices whose ``promotion_columns`` are not given: their matrix units sum in fp32.

    Notes
    -----
    Nothing here is calibrated. For long products on an H100 this says 1.16 times what fast accumulation takes; 1.1 to
    1.2 times were measured (pytorch/ao issue 2377). Kernels whose groups of warps take turns hide a part (DeepGEMM).

    References
    ----------
    DeepSeek-V3 Technical Report, 2024, section 3.3.2: sums of 14 bits, promoted after 128 columns, four instructions.
    CUTLASS, ``mma_promotion_interval``, 4 by default. NVIDIA, cuBLAS Library, ``CUBLASLT_MATMUL_DESC_FAST_ACCUM``.
    """
    if not kernel.promoted or gpu.promotion_columns is None or kernel.dtype not in _EIGHT_BIT:
        return 0.0
    return _ADDITION * gpu.num_sms / (gpu.vector_flop_per_s * gpu.promotion_columns)
