"""The chunks of a pipeline stage: the part of the model of each, and the weights that travel with its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clustersim.workload.layers.placed import Placed, blocks
from clustersim.workload.offload.back_pressure import fills_up
from clustersim.workload.offload.offloaded_group import in_buckets, offloaded_group
from clustersim.workload.offload.subgroup import Subgroup, subgroups
from clustersim.workload.passes.parameter_group import ParameterGroup
from clustersim.workload.placeholders import with_passing_placeholders
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.schedule import Overlapped, Placement, Unit, units_of
from clustersim.workload.shard import WIDTH, Shard
from clustersim.workload.sharding.groups import parameter_groups
from clustersim.workload.sharding.replicas import Replicas
from clustersim.workload.stage_chunk import StageChunk, stage_chunk
from clustersim.workload.stage_split import stage_split

__all__ = ["stage_chunks"]


def stage_chunks(
    stage: int,
    shards: Sequence[Shard],
    plan: ParallelPlan,
    *,
    placement: Placement,
    row: Sequence[Unit | Overlapped],
    kinds: Sequence[Replicas],
) -> list[StageChunk]:
    """All chunks of a stage, their passes written for each micro-batch that differs.

    Parameters
    ----------
    stage : int
    shards : Sequence[Shard]
        of each micro-batch, or one that stands for all
    plan : ParallelPlan
        resolved
    placement : Placement
        of the chunks on the stages
    row : Sequence[Unit | Overlapped]
        the stage's row of the schedule
    kinds : Sequence[Replicas]
        of dense weights and of those of experts
    """
    numbers = range(placement.num_virtual)
    cut: Sequence[Sequence[Subgroup]] = [()] * len(numbers)
    if plan.offload is not None:
        first = [_placed(stage, chunk, shards[0], plan, placement, kinds) for chunk in numbers]
        cut = subgroups(first, kinds, size=plan.offload.subgroup_size, fused=plan.offload.fused_tensors)
    units = list(units_of(row))
    several = len({unit.micro_batch for unit in units}) > 1
    found = []
    for chunk in numbers:
        different = {}
        for shard in dict.fromkeys(shards):
            placed = _placed(stage, chunk, shard, plan, placement, kinds)
            groups = [
                _groups(placed, shard, plan, kinds, cut[chunk], last=last, several=several) for last in (False, True)
            ]
            different[shard.documents] = stage_chunk(
                placed,
                shard,
                plan,
                stage=stage,
                chunk=chunk,
                placement=placement,
                kinds=frozenset(unit.kind for unit in units),
                groups=groups[0],
                last_groups=groups[1],
                prefetch=kinds[0].sharding.prefetch,
            )
        each = [different[shard.documents] for shard in shards]
        passes = tuple(passes for one in each for passes in one.passes)
        found.append(replace(each[0], passes=passes, subgroups=tuple(cut[chunk])))
    return found


def _placed(
    stage: int,
    chunk: int,
    shard: Shard,
    plan: ParallelPlan,
    placement: Placement,
    kinds: Sequence[Replicas],
) -> tuple[Placed, ...]:
    """The blocks of a chunk for a micro-batch."""
    route, position = placement.position(stage, chunk)
    model = shard.model
    length = shard.seq_len * shard.slices
    parts = stage_split(plan, model, len(placement.routes[route]), length)
    here = {placement.position(stage, c)[1] for c in range(placement.num_virtual)}
    both_here = {0, len(parts) - 1} <= here
    tied_here = model.tied_embeddings and both_here
    placed = blocks(shard, parts[position], tied_here=tied_here, embedded_here=both_here)
    if not kinds[0].in_passes:
        placed = with_passing_placeholders(placed, WIDTH[shard.recipe.weights], plan.placeholders)
    return placed


def _groups(
    placed: Sequence[Placed],
    shard: Shard,
    plan: ParallelPlan,
    kinds: Sequence[Replicas],
    subgroups: Sequence[Subgroup],
    *,
    last: bool,
    several: bool,
) -> tuple[ParameterGroup, ...]:
    """The weights and gradients that travel while the passes of a micro-batch run, of ``several`` or of one."""
    groups = parameter_groups(placed, shard, kinds, last=last)
    if not plan.overlap_dp and not any(kind.sharding.gather for kind in kinds):
        groups = tuple(replace(group, waits=0) if group.reduce else group for group in groups)
    if plan.offload is not None:
        adds, back = several and not last, in_buckets(groups, subgroups, plan.offload.subgroup_size)[::-1]
        full = fills_up(plan.offload, subgroups, [group.blocks for group in back])
        # whoever divides weights divides every tensor, so that all ranks have as much of each gradient
        ranks = {kind.axis: 1 if kind.sharding.weights > 1 else kind.sharding.optimizer for kind in kinds}
        groups = tuple(
            offloaded_group(group, subgroups, shard, plan.offload, ranks=ranks, last=last, adds=adds, full=fills)
            for group, fills in zip(back, full, strict=True)
        )[::-1]
    return tuple(group for group in groups if group.travels)
