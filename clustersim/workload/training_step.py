"""One optimizer step of a transformer as a job: a program a pipeline stage, and the groups between ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from clustersim.garbage import uncollected
from clustersim.workload.case import Case
from clustersim.workload.checkpoint.save import buffer, usual_rounds
from clustersim.workload.context import places
from clustersim.workload.document_lengths import SeqLens
from clustersim.workload.job import Job
from clustersim.workload.ledger import ledger
from clustersim.workload.model import Model
from clustersim.workload.offload.pools import pools
from clustersim.workload.packing import Packing
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.plan_values import plan_values
from clustersim.workload.precision import Recipe, find_recipe
from clustersim.workload.process_groups import process_groups
from clustersim.workload.program import Program
from clustersim.workload.ranks import Ranks
from clustersim.workload.resolve import resolve
from clustersim.workload.routing import expert_shards
from clustersim.workload.schedule.time_steps import posts
from clustersim.workload.shard import Shard
from clustersim.workload.stage_chunks import stage_chunks
from clustersim.workload.stage_program import stage_program
from clustersim.workload.variants import Difference, variants

__all__ = ["OFFLOADED_ROUNDS", "shard_of", "training_step"]

OFFLOADED_ROUNDS = 3
"""Of a run with offloading: updates that are put off and what stays in host memory reach from the first step into the
second."""


@uncollected()
def training_step(
    model: Model,
    plan: ParallelPlan,
    *,
    global_batch: int,
    micro_batch: int,
    seq_len: int,
    dtype: str | Recipe = "bf16",
    num_devices: int | None = None,
    name: str | None = None,
    devices: Sequence[int] | None = None,
    seq_lens: SeqLens = "fixed",
    seq_seed: int = 0,
) -> Job:
    """One step: every micro-batch forward and backward, gradients reduced, weights updated.

    Left out: data loading, the all-reduce of the gradient norm over stages, the FLOP of element-wise kernels.

    Parameters
    ----------
    model : Model
    plan : ParallelPlan
    global_batch, micro_batch : int
        sequences of the step, with ``plan.sync_every`` of each of its steps; of one pass through a replica
    seq_len : int
        tokens of a sequence
    dtype : str or Recipe
        number formats: a name in :data:`clustersim.workload.precision.RECIPES`, or an own recipe
    num_devices : int, optional
        GPUs to fill; gives dp where the plan leaves it open
    name : str, optional
        of the job; None: model and degrees
    devices : Sequence[int], optional
        device of each rank, for a job that has a cluster not to itself; rank r sits on device r when None
    seq_lens : str or Sequence[int]
        how long the documents are that sequences are packed with, as
        :func:`clustersim.workload.documents.documents` takes it
    seq_seed : int
        of their drawing

    Returns
    -------
    Job
        rank r is at the coordinates that ``plan.axis_order`` gives it; its program is that of its stage, and of its
        experts, its part of the sequence and its documents where these make unequal work

    Raises
    ------
    BadInput
        with every fault of the combination, each with the nearest legal value
    """
    case = Case(
        model=model,
        plan=plan,
        global_batch=global_batch,
        micro_batch=micro_batch,
        seq_len=seq_len,
        dtype=dtype,
        num_devices=num_devices,
        seq_lens=tuple(seq_lens) if isinstance(seq_lens, Iterable) and not isinstance(seq_lens, str) else seq_lens,
        seq_seed=seq_seed,
    )
    resolved = resolve(case)
    plan, placement, table = resolved.plan, resolved.placement, resolved.table()
    shard = shard_of(case, plan)
    ranks = Ranks.of(
        plan,
        dp=case.replicas,
        copies=len(placement.routes),
        recipe=shard.recipe,
        has_experts=model.experts is not None,
    )
    packing = Packing.of(case)
    different = variants(shard, tuple(_differences(shard, plan, ranks, packing)))
    programs = []
    for stage, row in enumerate(table):
        for own, place in zip(different.shards, different.places, strict=True):
            shards = packing.shards(own, replica=place.get("dp", 0))
            chunks = stage_chunks(stage, shards, plan, placement=placement, row=row, kinds=ranks.kinds)
            behind = posts(table, stage) if case.in_time_steps else None
            programs.append(stage_program(stage, chunks, row, own, plan, ranks.kinds, behind))
            programs[-1].name += "".join(f" {axis} {index}" for axis, index in place.items())
    return Job(
        name=name or f"{model.name}-tp{plan.tp}{f'-cp{plan.cp}' if plan.cp > 1 else ''}-pp{plan.pp}-dp{plan.dp}",
        devices=None if devices is None else np.asarray(devices, dtype=np.int64),
        programs=tuple(programs),
        program_of=ranks.mesh.coordinate("pp") * len(different.shards) + different.of_rank,
        families=process_groups(
            ranks.mesh,
            placement,
            experts=ranks.experts,
            tied=model.tied_embeddings or model.mtp > 0,
            ulysses=case.context.ulysses,
        ),
        ledger=ledger(
            model,
            tokens=ranks.num_steps * global_batch * seq_len,
            seq_len=seq_len,
            dtype=dtype,
            documents=packing.documents,
        ),
        pools={**pools(plan.offload, programs), **buffer(plan.checkpoint, programs)},
        plan=plan_values(plan),
        notes=resolved.notes,
        rounds=_rounds(plan, programs),
    )


def _rounds(plan: ParallelPlan, programs: Sequence[Program]) -> int | None:
    """Of a run that does not say how many steps it wants."""
    if plan.period > 1:
        return None
    if plan.checkpoint is not None:
        return usual_rounds(plan.checkpoint, programs)
    return None if plan.offload is None else OFFLOADED_ROUNDS


def shard_of(case: Case, plan: ParallelPlan) -> Shard:
    """A rank's share under a resolved plan, for the first place on every axis."""
    recipe = find_recipe(case.dtype)
    splits = plan.fsdp or plan.zero == 3
    gathers = plan.sharding is None and (splits or (plan.zero > 0 and case.replicas * plan.cp > 1))
    return Shard(
        model=case.model,
        micro_batch=case.micro_batch,
        seq_len=case.seq_len // plan.sequence_slices,
        dtype=replace(recipe, gathered=plan.gather_dtype) if plan.gather_dtype and gathers else case.dtype,
        module_dtypes=tuple(plan.module_dtypes),
        bf16_ends=(plan.bf16_layers_at_start, plan.bf16_layers_at_end),
        gradient_dtype=plan.gradient_dtype or recipe.gradients,
        tp=plan.tp,
        sequence_parallel=bool(plan.sequence_parallel),
        attention=plan.attention,
        dropout=plan.dropout,
        fusion=tuple(plan.fusion),
        loss=plan.loss,
        logged_losses=plan.logged_losses,
        unaligned=plan.unaligned,
        expert_kernels=plan.expert_kernels,
        context=case.context,
        repeats_heads=plan.repeat_heads,
        splits_projections=plan.split_projections,
        casts_first=plan.gather_cast,
        batch_first=plan.batch_first,
        slices=plan.sequence_slices,
        replicas=case.replicas,
    )


def _differences(shard: Shard, plan: ParallelPlan, ranks: Ranks, packing: Packing) -> Iterator[Difference]:
    """What ranks of one stage do differently: their part of a sequence, their documents, their experts."""
    contexts = places(shard.context, packing.masks(shard))
    yield Difference(axis="cp", fields=[{"context": c} for c in contexts], of_rank=ranks.mesh.coordinate("cp"))
    yield packing.by_replica(ranks.replica())
    if shard.model.experts is not None and ranks.experts is not None:
        shares = expert_shards(shard.model.experts, plan, rows=shard.rows)
        yield Difference(axis="ep", fields=[{"experts": s} for s in shares], of_rank=ranks.experts.coordinate("ep"))
