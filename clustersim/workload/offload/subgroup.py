"""A subgroup: whole tensors of neighbouring blocks whose optimizer state is moved and updated together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clustersim.workload.layers.placed import Placed
from clustersim.workload.matrix import Matrix
from clustersim.workload.sharding.replicas import Replicas

__all__ = ["Subgroup", "subgroups"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subgroup:
    """This rank's part of the weights of one subgroup.

    Parameters
    ----------
    index : int
        among all of its stage, in forward order
    count : int
        subgroups of the stage
    axis : {"dp", "edp"}
        ``edp``: weights of experts
    chunk : int
        of the stage that its blocks are in
    parts : tuple[tuple[int, int], ...]
        (block of the chunk, weights of this rank in it), in forward order
    """

    index: int
    count: int
    axis: str
    chunk: int
    parts: tuple[tuple[int, int], ...]

    @property
    def parameters(self) -> int:
        """Weights of this rank."""
        return sum(weights for _, weights in self.parts)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Blocks of the chunk that it has weights of."""
        return tuple(block for block, _ in self.parts)


def subgroups(
    chunks: Sequence[Sequence[Placed]], kinds: Sequence[Replicas], *, size: int, fused: bool = False
) -> tuple[tuple[Subgroup, ...], ...]:
    """Cut the weights of a stage.

    Tensors are taken in forward order until ``size`` weights of this rank's share are together; a tensor is never
    divided, so one that is larger than ``size`` is a subgroup of its own. What a block has besides matrices (norms,
    biases) counts as one tensor.

    Parameters
    ----------
    chunks : Sequence[Sequence[Placed]]
        blocks of each chunk of the stage
    kinds : Sequence[Replicas]
        of dense weights and of those of experts
    size : int
        weights of this rank's share
    fused : bool
        matrices that read one input are one tensor

    Returns
    -------
    tuple[tuple[Subgroup, ...], ...]
        of each chunk, those of dense weights first

    References
    ----------
    DeepSpeed, ``runtime/zero/stage3.py``, ``_create_fp16_sub_groups``: whole parameters, by the elements of this rank's
    partition, until ``sub_group_size`` is reached.
    """
    cut = [
        (chunk, kind.axis, parts)
        for chunk, placed in enumerate(chunks)
        for kind in kinds
        for parts in _cut(list(_tensors(placed, kind, fused=fused)), size)
    ]
    found = [
        Subgroup(index=index, count=len(cut), axis=axis, chunk=chunk, parts=parts)
        for index, (chunk, axis, parts) in enumerate(cut)
    ]
    return tuple(tuple(one for one in found if one.chunk == chunk) for chunk in range(len(chunks)))


def _tensors(placed: Sequence[Placed], kind: Replicas, *, fused: bool) -> Iterator[tuple[int, int]]:
    """(block, weights of this rank) of each tensor; shares are rounded so that all together are the rank's part."""
    before = 0
    for number, p in enumerate(placed):
        matrices = list(_matrices(kind.matrices(p.block), fused=fused))
        rest = kind.parameters(p.block) - sum(matrices)
        for elements in (*matrices, rest) if rest > 0 else matrices:
            shares = kind.sharding.optimizer
            share = -(-(before + elements) // shares) - -(-before // shares)
            before += elements
            if share:
                yield number, share


def _matrices(matrices: Sequence[Matrix], *, fused: bool) -> Iterator[int]:
    """Elements of each tensor of a block's matrices."""
    together = 0
    for matrix in matrices:
        for _ in range(matrix.count):
            if together and not (fused and matrix.joins):
                yield together
                together = 0
            together += matrix.elements
    if together:
        yield together


def _cut(tensors: Sequence[tuple[int, int]], size: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Runs of tensors, those of one block added up."""
    parts: dict[int, int] = {}
    for n, (block, share) in enumerate(tensors):
        parts[block] = parts.get(block, 0) + share
        if sum(parts.values()) >= size or n == len(tensors) - 1:
            yield tuple(parts.items())
            parts = {}
