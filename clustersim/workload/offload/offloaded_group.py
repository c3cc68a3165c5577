"""A parameter group whose weights come from the host, or whose gradients go there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clustersim.workload.offload.contiguous_parts import copying_turns
from clustersim.workload.offload.gradient_path import gradient_path
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.traffic import by_tier, fetch
from clustersim.workload.op import Storage
from clustersim.workload.passes.parameter_group import ParameterGroup
from clustersim.workload.shard import WIDTH, Shard

__all__ = ["in_buckets", "offloaded_group"]


def in_buckets(
    groups: Sequence[ParameterGroup], subgroups: Sequence[Subgroup], size: int
) -> tuple[ParameterGroup, ...]:
    """Groups that no gathering or reduction holds together, cut so that their gradients leave in buckets.

    Parameters
    ----------
    groups : Sequence[ParameterGroup]
        of a chunk, in forward order
    subgroups : Sequence[Subgroup]
        of the chunk
    size : int
        weights of a bucket, at least; it fills in the order of the backward pass and holds whole blocks of one group
    """
    found: list[ParameterGroup] = []
    for group in reversed(groups):
        cut: list[list[int]] = []
        room = 0
        for block in group.blocks[::-1]:
            if not cut or (room <= 0 and not group.travels):
                cut.append([])
                room = size
            cut[-1].insert(0, block)
            room -= sum(weights for s in subgroups for b, weights in s.parts if b == block)
        if room > 0 and len(cut) > 1:
            cut[-2:] = [cut[-1] + cut[-2]]
        found += [replace(group, blocks=tuple(blocks)) for blocks in cut]
    return tuple(reversed(found))


def offloaded_group(
    group: ParameterGroup,
    subgroups: Sequence[Subgroup],
    shard: Shard,
    policy: OffloadPolicy,
    *,
    ranks: Mapping[str, int],
    last: bool,
    adds: bool,
    full: bool = False,
) -> ParameterGroup:
    """The group with what a policy brings before its gatherings and takes away behind its reduction.

    Gradients leave subgroup by subgroup, so that no copy is larger than what is updated together.

    Parameters
    ----------
    group : ParameterGroup
    subgroups : Sequence[Subgroup]
        of its chunk
    shard : Shard
    policy : OffloadPolicy
    ranks : Mapping[str, int]
        that divide the state of weights into runs, by axis; 1 where every tensor is divided
    last : bool
        of the last micro-batch
    adds : bool
        its gradients are added to those of other micro-batches
    full : bool
        with its gradients the buffers on the way to drives are full
    """
    before = tuple(fetch(policy, subgroups, group.blocks, width=shard.recipe.gathered_width))
    away = sum(n for tier, n in by_tier(policy, subgroups, group.blocks, "weights").items() if tier != "gpu")
    group = replace(
        group,
        gather=(*before, *group.gather),
        gather_again=(*before, *group.gather_again),
        gathered_nbytes=group.gathered_nbytes or shard.recipe.gathered_width * away,
    )
    if not policy.each_micro_batch:
        return group
    width = WIDTH[shard.gradient_dtype]
    parts = [
        (tier, n, 1.0 if policy.round_robin else copying_turns(group.blocks, s, subgroups, ranks[s.axis]))
        for s in reversed(subgroups)
        for tier, n in by_tier(policy, [s], group.blocks, "gradients").items()
    ]
    paths = [gradient_path(policy, tier, n, width=width, last=last, adds=adds, turns=turns) for tier, n, turns in parts]
    leaving = sum(n for tier, n, _ in parts if tier != "gpu")
    arrive = [op for path in paths for op in path.arrive]
    on_host = [op for op in arrive if not isinstance(op, Storage)]
    on_drives = [op for op in arrive if isinstance(op, Storage)]
    waits = len(on_host) if policy.blocking and leaving else group.waits
    return replace(
        group,
        reduce=(*group.reduce, *(op for path in paths for op in path.leave)),
        store=(*on_host, *on_drives),
        waits=len(arrive) if full and last else waits,
        gradient_nbytes=group.gradient_nbytes or width * leaving,
    )
