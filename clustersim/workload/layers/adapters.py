"""Low-rank adapters: blocks whose own weights are frozen, with two narrow matrices beside each target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.kernels import (
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.piece import Piece
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard
from clustersim.workload.sublayer import Sublayer, targets

__all__ = ["adapted"]

_SUBLAYERS: Mapping[str, tuple[Sublayer, ...]] = {
    "attention": ("attention",),
    "mlp": ("mlp",),
    "parallel": ("attention", "mlp"),
}
"""What a block of each kind is made of; other kinds have no targets."""

_READ_BY = {"norm": ("q", "k", "v", "gate", "up"), "activation": ("down",)}
"""Targets whose gradient reads what a part of a block makes."""


def adapted(shard: Shard, block: Block) -> Block:
    """A block with frozen weights: no gradients of them, and nothing kept that only these would read.

    A target's input of width m goes through m × r and r × n, and is added to its output. Dropout before the adapter is
    left out. An embedding that is frozen has no backward pass. What a frozen matrix reads is still kept where it is
    neither the output of a norm nor of an activation. Where the recipe quantises, frozen products are quantised, those
    of adapters are not, and what these read is kept in the activations' dtype too; quantised copies of frozen weights
    are left out.

    Parameters
    ----------
    shard : Shard
        of a model with adapters, and of one tensor-parallel rank

    References
    ----------
    Hu et al., LoRA, 2021, section 4.1 (arXiv 2106.09685).
    """
    model, wide = shard.model, shard.unquantised
    found = targets(model, _SUBLAYERS.get(block.kind, ()))
    names = () if model.adapters is None else model.adapters.targets
    chosen: dict[str, tuple[int, int]] = {name: found[name] for name in names if name in found}
    unread = [part for part in block.parts if part.name in _READ_BY and not chosen.keys() & set(_READ_BY[part.name])]
    frozen = block.parameters + block.expert_parameters
    if block.kind == "embedding":
        return replace(
            block, backward=(), parameters=0, replicated_parameters=0, matrices=(), kept=0, frozen_parameters=frozen
        )
    narrow = list(_narrow(shard, chosen))
    rank = 0 if model.adapters is None else model.adapters.rank
    return replace(
        block,
        forward=(*block.forward, *_forward(wide, chosen)),
        backward=(*block.input_backward(), *_backward(wide, chosen)),
        parts=tuple(part for part in block.parts if part not in unread),
        parameters=sum(rows * columns for rows, columns in narrow),
        replicated_parameters=0,
        expert_parameters=0,
        frozen_parameters=frozen,
        matrices=tuple(Matrix(features_in=rows, features_out=columns, hidden=False) for rows, columns in narrow),
        kept=block.kept
        - sum(part.kept for part in unread)
        + shard.width * shard.tokens * (rank * len(chosen) + _read_again(shard, chosen)),
        weight_kept=weight_gradient_nbytes(wide, *narrow),
    )


def _read_again(shard: Shard, chosen: Mapping[str, tuple[int, int]]) -> int:
    """Features of a token that adapters read and the recipe keeps quantised only; targets of one part read alike."""
    if shard.recipe.quantisation is None:
        return 0
    return sum(max((chosen[name][0] for name in names if name in chosen), default=0) for names in _READ_BY.values())


def _narrow(shard: Shard, chosen: Mapping[str, tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The two matrices beside each target."""
    if shard.model.adapters is not None:
        for rows, columns in chosen.values():
            yield rows, shard.model.adapters.rank
            yield shard.model.adapters.rank, columns


def _forward(shard: Shard, chosen: Mapping[str, tuple[int, int]]) -> tuple[Piece, ...]:
    kernels = [kernel for matrix in _narrow(shard, chosen) for kernel in linear(shard, *matrix)]
    return _piece("adapters forward", [*kernels, *(_sum(shard, columns) for _, columns in chosen.values())])


def _backward(shard: Shard, chosen: Mapping[str, tuple[int, int]]) -> tuple[Piece, ...]:
    """Gradients of the input, added to those through the target; then those of the narrow matrices."""
    narrow = list(_narrow(shard, chosen))
    inputs = [kernel for matrix in narrow for kernel in linear_input_gradient(shard, *matrix)]
    weights = [kernel for matrix in narrow for kernel in linear_weight_gradient(shard, *matrix)]
    return (
        *_piece("adapters backward", [*inputs, *(_sum(shard, rows) for rows, _ in chosen.values())]),
        *_piece("adapters weight gradient", weights, weight=True),
    )


def _sum(shard: Shard, features: int) -> Kernel:
    return memory_pass(3 * shard.width * shard.tokens * features, dtype=shard.recipe.activations)


def _piece(name: str, kernels: Sequence[Kernel], *, weight: bool = False) -> tuple[Piece, ...]:
    if not kernels:
        return ()
    return (Piece(op=Compute(name=name, kind="adapters", kernels=tuple(kernels)), weight=weight),)
