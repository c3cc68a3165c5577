"""What drawing random numbers costs a fused attention kernel that drops some of its weights."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel

__all__ = ["drawing"]

_FORWARD, _BACKWARD = 0.8, 0.65
"""Part of the rate without dropout that is left with it."""


def drawing(kernel: Kernel) -> float:
    """How many times as long a kernel computes for the numbers that it draws; 1 without dropout.

    A fused kernel keeps no mask: it draws a number for each pair of tokens forward and the same again backward. Drawing
    and the softmax wait for the same units, so that neither hides the other. Passes over memory that apply a mask draw
    behind their reads and pay nothing here.

    Notes
    -----
    Measured on GB200: FlashAttention 4 with dropout reaches 75 to 85 % of its rate forward and 60 to 70 % backward,
    about the same for heads of 64 and 128 columns and all lengths of sequences, and cuDNN no more
    (Dao-AILab/flash-attention pull request 2597); the middles are taken, and assumed on other devices. On GB10 a
    kernel with heads of 128 columns pays 0 to 6 %, with 64 columns 11 to 16 % (pull request 2439).

    References
    ----------
    Ma, Liu and Krashinsky, Reducing the Cost of Dropout in Flash-Attention by Hiding RNG with GEMM, 2024 (arXiv
    2410.07531): on GH100 fusion hides little of the drawing, and hiding it makes a layer 1.14 to 1.26 times as fast.
    """
    if not kernel.dropout:
        return 1.0
    return 1 / (_BACKWARD if kernel.backward else _FORWARD)
