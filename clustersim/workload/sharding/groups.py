"""The parameter groups of a chunk: its layers, and what stands before and after them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

from clustersim.workload.layers.kernels import memory_pass, weight_cast
from clustersim.workload.layers.placed import Placed
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Collective, Compute
from clustersim.workload.passes.parameter_group import ParameterGroup
from clustersim.workload.shard import WIDTH, Shard
from clustersim.workload.sharding.movement import ops_of
from clustersim.workload.sharding.replicas import Replicas

__all__ = ["parameter_groups"]

When = Literal["gather", "gather_again", "reduce"]


def parameter_groups(
    placed: Sequence[Placed], shard: Shard, kinds: Sequence[Replicas], *, last: bool
) -> tuple[ParameterGroup, ...]:
    """One group a layer, or a block with the norm before it; embedding and head are groups of their own.

    Where weights stay whole, neighbouring groups are reduced together as far as the strategy's bucket holds them. What
    is not trained is gathered with the rest and has no gradients.

    Parameters
    ----------
    placed : Sequence[Placed]
        the chunk's blocks
    shard : Shard
    kinds : Sequence[Replicas]
        of dense weights and of those of experts
    last : bool
        of the last micro-batch, whose gradients are reduced in any case

    Returns
    -------
    tuple[ParameterGroup, ...]
        in forward order, also those of which nothing travels while the passes run
    """
    found = []
    for blocks in _together(placed, kinds):
        trained = [(kind, sum(kind.parameters(placed[i].block) for i in blocks)) for kind in kinds]
        weights = [(kind, n + sum(kind.frozen(placed[i].block) for i in blocks)) for kind, n in trained]

        def ops(
            when: When, counts: list[tuple[Replicas, int]], blocks: tuple[int, ...] = blocks
        ) -> Iterator[Compute | Collective]:
            for kind, parameters in counts:
                reduces = kind.sharding.each_micro_batch or (last and kind.in_passes)
                if parameters and (when != "reduce" or reduces):
                    moves = getattr(kind.sharding, when)
                    yield from ops_of(moves, parameters, axis=kind.axis, ranks=kind.ranks)
                    if moves and when != "reduce":
                        yield from _cast(shard, [m for i in blocks for m in kind.matrices(placed[i].block)])

        group = ParameterGroup(
            blocks=blocks,
            gather=tuple(ops("gather", weights)),
            gather_again=tuple(ops("gather_again", weights)),
            reduce=tuple(ops("reduce", trained)),
            gathered_nbytes=sum(shard.recipe.gathered_width * n for kind, n in weights if kind.sharding.gather),
            gradient_nbytes=sum(
                WIDTH[shard.gradient_dtype] * n
                for kind, n in trained
                if kind.sharding.each_micro_batch and kind.sharding.gradients > 1
            ),
            keeps=any(kind.sharding.keeps for kind in kinds),
            bounded=all(kind.sharding.bounded for kind in kinds),
        )
        copy_out, copy_in = _copies(group, shard, weights, trained)
        group = replace(group, copy_out=copy_out, copy_in=copy_in)
        found.append(group)
    return tuple(found)


def _copies(
    group: ParameterGroup,
    shard: Shard,
    weights: Sequence[tuple[Replicas, int]],
    trained: Sequence[tuple[Replicas, int]],
) -> tuple[Compute | None, Compute | None]:
    """The kernels that read and write weights once more when they have come, and gradients before they go.

    Gradients of a flat parameter, of w bytes as weights are gathered and r as they are reduced, are views of its own:
    they are put together (2w bytes a parameter), cast (w + r) where r differs, and divided (2r).

    References
    ----------
    PyTorch FSDP1, ``torch/distributed/fsdp``: ``FlatParamHandle`` splits the flat parameter into views, whose gradients
    autograd concatenates; ``_post_backward_hook`` casts and divides by ``_gradient_predivide_factor``.
    """
    out = sum(
        2 * shard.recipe.gathered_width * n for kind, n in weights if kind.sharding.copies and kind.sharding.gather
    )
    copied = [(kind.sharding, n) for kind, n in trained if kind.sharding.copies]
    gone = sum(math.ceil((WIDTH[shard.gradient_dtype] + s.reduce[0].nbytes) * n) for s, n in copied if s.reduce)

    w = shard.recipe.gathered_width
    flat = [(kind.sharding.reduce[0].nbytes, n) for kind, n in trained if kind.sharding.flat and kind.sharding.reduce]
    gone += sum(math.ceil((2 * w + (w + r if r != w else 0) + 2 * r) * n) for r, n in flat)

    def copy(name: str, nbytes: int, dtype: str) -> Compute | None:
        kernels = (memory_pass(nbytes, dtype=dtype),)
        return Compute(name=name, kind="copy", kernels=kernels) if nbytes else None

    return (
        copy("copy out weights", out if group.gather else 0, shard.recipe.activations),
        copy("copy in gradients", gone if group.reduce else 0, shard.gradient_dtype),
    )


def _cast(shard: Shard, matrices: Sequence[Matrix]) -> Iterator[Compute]:
    """What a quantised recipe makes of gathered weights, each time anew."""
    kernels = weight_cast(shard.recipe, matrices)
    if kernels:
        yield Compute(name="cast weights", kind="quantise", kernels=kernels)


def _by_block(placed: Sequence[Placed], layer: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The blocks of a layer that have matrices, each with those before it that have none."""
    first = 0
    for n, i in enumerate(layer):
        if placed[i].block.matrices or placed[i].block.expert_matrices or n == len(layer) - 1:
            yield tuple(layer[first : n + 1])
            first = n + 1


def _together(placed: Sequence[Placed], kinds: Sequence[Replicas]) -> Iterator[tuple[int, ...]]:
    """Blocks of each group, groups in forward order; buckets fill in the order of the backward pass."""
    layers = [tuple(members) for _, members in groupby(range(len(placed)), key=lambda i: placed[i].layer)]
    if any(kind.sharding.by_block for kind in kinds):
        layers = [blocks for layer in layers for blocks in _by_block(placed, layer)]
    bucket = max(kind.sharding.bucket for kind in kinds)
    if any(kind.sharding.gather for kind in kinds) or not bucket:
        yield from layers
        return
    found: list[tuple[int, ...]] = []
    total = 0
    for blocks in reversed(layers):
        parameters = sum(kind.parameters(placed[i].block) for kind in kinds for i in blocks)
        if found and total + parameters <= bucket:
            found[-1] = (*blocks, *found[-1])
            total += parameters
        else:
            found.append(blocks)
            total = parameters
    yield from reversed(found)
