"""The chunks of a pipeline stage: the part of the model of each, and the weights that travel with its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clustersim.workload.layers.placed import blocks
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
    found = []
    for chunk in range(placement.num_virtual):
        different = {s.documents: _passes(stage, chunk, s, plan, placement, row, kinds) for s in dict.fromkeys(shards)}
        each = [different[shard.documents] for shard in shards]
        found.append(replace(each[0], passes=tuple(passes for one in each for passes in one.passes)))
    return found


def _passes(
    stage: int,
    chunk: int,
    shard: Shard,
    plan: ParallelPlan,
    placement: Placement,
    row: Sequence[Unit | Overlapped],
    kinds: Sequence[Replicas],
) -> StageChunk:
    """A chunk for a micro-batch."""
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
    return stage_chunk(
        placed,
        shard,
        plan,
        stage=stage,
        chunk=chunk,
        placement=placement,
        kinds=frozenset(unit.kind for unit in units_of(row)),
        groups=parameter_groups(placed, shard, kinds, last=False),
        last_groups=parameter_groups(placed, shard, kinds, last=True),
        prefetch=kinds[0].sharding.prefetch,
    )
