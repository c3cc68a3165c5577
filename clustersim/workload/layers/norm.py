"""Norms, and the residual additions fused with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.layers.operators import rms_norm_backward, rms_norm_forward
from clustersim.workload.layers.piece import serial
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

__all__ = ["middle_norm", "norm", "norm_part", "post_norm", "residual"]


def norm(shard: Shard, *, kind: str = "norm", produces: bool = False) -> Block:
    """A norm over the residual stream: reads and writes it once.

    Backward there are two kernels, one for the gradient of the input and one that reads the same again for those of
    weight and bias; and, inside a layer, the sum with the gradient that went around the block.

    Its input belongs to the block that produced it, and the gradient of the residual stream to the whole chunk.
    """
    parameters = shard.model.hidden * (2 if shard.model.norm_bias else 1)
    return Block(
        kind=kind,
        forward=serial(Compute(name=f"{kind} forward", kind="norm", kernels=_forward(shard))),
        backward=serial(Compute(name=f"{kind} backward", kind="norm", kernels=_backward(shard, around=kind == "norm"))),
        parameters=parameters,
        replicated_parameters=parameters,
        produces=produces,
    )


def middle_norm(shard: Shard) -> Block:
    """The norm between attention and MLP, with the residual addition before it; it keeps the sum.

    Where both are one kernel it reads both summands and writes the sum and its norm.
    """
    plain = norm(shard)
    kernels = (*_add(shard), *_forward(shard))
    if "residual_norm" in shard.fusion:
        mask = shard.rows * shard.model.hidden * shard.dropout
        kernels = (memory_pass(4 * shard.residual_nbytes + mask, dtype=shard.recipe.activations, form="norm"),)
    return Block(
        kind="norm",
        forward=serial(Compute(name="residual and norm forward", kind="norm", kernels=kernels)),
        backward=plain.backward,
        parameters=plain.parameters,
        replicated_parameters=plain.replicated_parameters,
        parts=(
            Part(
                name="residual",
                op=Compute(name="residual forward", kind="residual", kernels=_add(shard)),
                kept=shard.residual_nbytes,
            ),
        ),
        kept=shard.residual_nbytes,
    )


def post_norm(shard: Shard) -> Block:
    """A norm of what a sublayer adds to the residual stream; it keeps its input."""
    plain = norm(shard, kind="post norm")
    return replace(plain, kept=shard.residual_nbytes)


def residual(shard: Shard) -> Block:
    """The residual addition after the MLP; backward the gradient passes through."""
    return Block(
        kind="residual",
        forward=serial(Compute(name="residual forward", kind="residual", kernels=_add(shard))),
        produces=True,
    )


def norm_part(shard: Shard, kept: Iterable[Kept]) -> Part:
    """The norm before a block, as what that block computes again instead of keeping its input.

    Parameters
    ----------
    shard : Shard
    kept : Iterable[Kept]
        what the block keeps
    """
    op = Compute(name="norm forward", kind="norm", kernels=_forward(shard))
    return Part(name="norm", op=op, kept=kept_nbytes(kept, "norm"))


def _is_one_kernel(shard: Shard) -> bool:
    return shard.model.norm != "rmsnorm" or bool({"norm", "residual_norm"} & set(shard.fusion))


def _forward(shard: Shard) -> tuple[Kernel, ...]:
    if not _is_one_kernel(shard):
        return rms_norm_forward(shard)
    return (memory_pass(2 * shard.residual_nbytes, dtype=shard.recipe.activations, form="norm"),)


def _backward(shard: Shard, *, around: bool) -> tuple[Kernel, ...]:
    """The input's gradient (reads input and output gradient, writes), the weights' (reads both), the sum of two.

    A compiler makes input's gradient and sum one kernel. Weights that adapters leave frozen have none.

    References
    ----------
    PyTorch, ``aten/src/ATen/native/cuda/layer_norm_kernel.cu``, and Apex, ``csrc/layer_norm_cuda_kernel.cu``: the
    gradients of weight and bias have a kernel of their own. The sum is autograd's, an addition of two tensors.
    """
    x, dtype = shard.residual_nbytes, shard.recipe.activations
    sums = (memory_pass(3 * x, dtype=dtype),) if around else ()
    if not _is_one_kernel(shard):
        return (*rms_norm_backward(shard), *sums)
    weights = () if shard.model.adapters else (memory_pass(2 * x, dtype=dtype, form="norm"),)
    if "residual_norm" in shard.fusion and around:
        return (memory_pass(4 * x, dtype=dtype, form="norm"), *weights)
    return (memory_pass(3 * x, dtype=dtype, form="norm"), *weights, *sums)


def _add(shard: Shard) -> tuple[Kernel, ...]:
    """Reads block output and residual, writes their sum; with dropout also a mask of one byte an element.

    Dropout in a kernel of its own reads and writes the block's output once more.
    """
    mask, dtype = shard.rows * shard.model.hidden * shard.dropout, shard.recipe.activations
    if shard.dropout and not {"residual", "residual_norm"} & set(shard.fusion):
        return (
            memory_pass(2 * shard.residual_nbytes + mask, dtype=dtype),
            memory_pass(3 * shard.residual_nbytes, dtype=dtype),
        )
    return (memory_pass(3 * shard.residual_nbytes + mask, dtype=dtype),)
