"""A parallel residual: attention and MLP read the same tokens, and their outputs are added to them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.layers.norm import norm, residual
from clustersim.workload.layers.piece import Piece
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

__all__ = ["parallel"]


def parallel(shard: Shard, attention: Block, mlp: Block) -> list[Block]:
    """The blocks of a layer whose two sublayers are added once: their outputs are summed over ranks once.

    With a norm each, both reduce the gradient of their input. With one norm the sublayers are one block, which reads
    its input once and reduces its gradient once.

    Parameters
    ----------
    shard : Shard
    attention, mlp : Block
        as they stand one after the other

    References
    ----------
    Wang and Komatsuzaki, GPT-J-6B, 2021 (one norm). Black et al., GPT-NeoX-20B, 2022, section 2.1 (two norms, one
    all-reduce forward).
    """
    if shard.model.shared_norm:
        return [norm(shard), _one_block(shard, attention, mlp), residual(shard)]
    held, gradient = shard.full_nbytes, shard.full_nbytes * shard.sequence_parallel
    second = norm(shard)
    return [
        norm(shard),
        replace(attention, reduces=False, backward_workspace=attention.backward_workspace + gradient),
        replace(
            second,
            forward_workspace=second.forward_workspace + held,
            backward_workspace=second.backward_workspace + gradient,
        ),
        replace(
            mlp,
            forward=(*mlp.forward, _sum(shard, "parallel sum forward")),
            forward_workspace=mlp.forward_workspace + held,
        ),
        residual(shard),
    ]


def _one_block(shard: Shard, attention: Block, mlp: Block) -> Block:
    """Both sublayers between one gather and one reduction; the gradients of the first matrix of each stand last."""
    operand, h = shard.recipe.activation_operand, shard.model.hidden
    last = [block.backward[-1].op for block in (mlp, attention)]
    kernels = tuple(kernel for op in last if isinstance(op, Compute) for kernel in op.kernels)
    backward = [*mlp.backward[:-1], *_shifted(attention.backward[:-1], by=len(mlp.backward) - 1)]
    weights = Compute(name="parallel weight gradient", kind="parallel", kernels=kernels)
    return Block(
        kind="parallel",
        forward=(
            *attention.forward,
            *_shifted(mlp.forward, by=len(attention.forward)),
            _sum(shard, "parallel sum forward"),
        ),
        backward=(*backward, _sum(shard, "parallel sum backward"), Piece(op=weights, weight=True)),
        parts=(*attention.parts, *(part for part in mlp.parts if part.name != "norm")),
        parameters=attention.parameters + mlp.parameters,
        replicated_parameters=attention.replicated_parameters + mlp.replicated_parameters,
        matrices=(*attention.matrices, *mlp.matrices),
        gathers=True,
        reduces=True,
        kept=attention.kept + mlp.kept - operand.nbytes(shard.rows * h),
        weight_kept=attention.weight_kept + mlp.weight_kept - operand.nbytes(shard.tokens * h),
        forward_workspace=max(attention.forward_workspace, mlp.forward_workspace + shard.full_nbytes),
        backward_workspace=max(mlp.backward_workspace, attention.backward_workspace + shard.full_nbytes),
    )


def _shifted(pieces: tuple[Piece, ...], *, by: int) -> Iterator[Piece]:
    """Pieces that stand behind ``by`` others."""
    for piece in pieces:
        yield piece if piece.after is None else replace(piece, after=tuple(n + by for n in piece.after))


def _sum(shard: Shard, name: str) -> Piece:
    """Two tensors of R × h, each a partial sum, into one."""
    kernel: Kernel = memory_pass(3 * shard.full_nbytes, dtype=shard.recipe.activations)
    return Piece(op=Compute(name=name, kind="parallel", kernels=(kernel,)))
