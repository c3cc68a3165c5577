"""The kernels that layers are made of, from their shapes.

FLOP are those of the matrix products, two a multiply-add. Element-wise passes count none: they are bound by
memory, and the conventions of MFU leave them out.
"""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.precision import FORMATS
from clustersim.workload.shard import WIDTH, Shard

__all__ = ["gemm", "linear", "linear_input_gradient", "linear_weight_gradient", "memory_pass", "weight_gradient_nbytes"]


def gemm(m: int, n: int, k: int, *, dtype: str, batch: int = 1) -> Kernel:
    """``batch`` products of (m × k)·(k × n): 2·m·n·k FLOP and w·(m·k + k·n + m·n) bytes each."""
    return Kernel(
        kind="gemm",
        dtype=dtype,
        flops=2 * batch * m * n * k,
        nbytes=FORMATS[dtype].nbytes(batch * (m * k + k * n + m * n)),
        m=m,
        n=n,
        k=k,
        batch=batch,
    )


def linear(shard: Shard, features_in: int, features_out: int, *, tokens: int | None = None) -> tuple[Kernel, ...]:
    """Y = X·W over the tokens of a micro-batch, or over so many."""
    rows = shard.tokens if tokens is None else tokens
    return (gemm(rows, features_out, features_in, dtype=shard.recipe.products),)


def linear_input_gradient(
    shard: Shard, features_in: int, features_out: int, *, tokens: int | None = None
) -> tuple[Kernel, ...]:
    """dX = dY·Wᵀ."""
    rows = shard.tokens if tokens is None else tokens
    return (gemm(rows, features_in, features_out, dtype=shard.recipe.products),)


def linear_weight_gradient(
    shard: Shard, features_in: int, features_out: int, *, tokens: int | None = None
) -> tuple[Kernel, ...]:
    """dW += Xᵀ·dY, added to the gradient in the GEMM's epilogue: the gradient is read and written in its own dtype."""
    rows = shard.tokens if tokens is None else tokens
    elements = features_in * features_out
    operands = shard.width * rows * (features_in + features_out)
    return (
        Kernel(
            kind="gemm",
            dtype=shard.recipe.products,
            flops=2 * rows * elements,
            nbytes=operands + 2 * WIDTH[shard.gradient_dtype] * elements,
            m=features_in,
            n=features_out,
            k=rows,
        ),
    )


def weight_gradient_nbytes(shard: Shard, *matrices: tuple[int, int], tokens: int | None = None) -> int:
    """What the weight gradients of ``matrices`` read: the input and the output's gradient of each [B]."""
    rows = shard.tokens if tokens is None else tokens
    return shard.width * rows * sum(features_in + features_out for features_in, features_out in matrices)


def memory_pass(nbytes: int, *, dtype: str) -> Kernel:
    """An element-wise kernel that reads and writes ``nbytes`` [B] in all."""
    return Kernel(kind="memory", dtype=dtype, flops=0, nbytes=nbytes)
