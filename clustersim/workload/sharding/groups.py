"""The parameter groups of a chunk: its layers, and what stands before and after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

from clustersim.workload.layers.placed import Placed
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
    """One group a layer; embedding and head with their norms are groups of their own.

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
        empty when nothing travels while the passes run
    """
    found = []
    for _, members in groupby(range(len(placed)), key=lambda i: placed[i].layer):
        blocks = tuple(members)
        weights = [(kind, sum(kind.parameters(placed[i].block) for i in blocks)) for kind in kinds]

        def ops(when: When, weights: list[tuple[Replicas, int]] = weights) -> Iterator[Compute | Collective]:
            for kind, parameters in weights:
                reduces = kind.sharding.each_micro_batch or (last and kind.in_passes)
                if parameters and (when != "reduce" or reduces):
                    moves = getattr(kind.sharding, when)
                    yield from ops_of(moves, parameters, axis=kind.axis, ranks=kind.ranks)

        group = ParameterGroup(
            blocks=blocks,
            gather=tuple(ops("gather")),
            gather_again=tuple(ops("gather_again")),
            reduce=tuple(ops("reduce")),
            gathered_nbytes=sum(WIDTH[shard.recipe.weights] * n for kind, n in weights if kind.sharding.gather),
            gradient_nbytes=sum(
                WIDTH[shard.gradient_dtype] * n for kind, n in weights if kind.sharding.each_micro_batch
            ),
            keeps=any(kind.sharding.keeps for kind in kinds),
        )
        if group.gather or group.reduce:
            found.append(group)
    return tuple(found)
