"""One optimizer step of a transformer as a job: a program a pipeline stage, and the groups between ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from clustersim.faults import BadInput
from clustersim.workload.buckets import default_bucket_parameters
from clustersim.workload.case import Case
from clustersim.workload.context import places
from clustersim.workload.document_lengths import SeqLens
from clustersim.workload.documents import Documents
from clustersim.workload.expert_mesh import expert_mesh
from clustersim.workload.job import Job, Ledger
from clustersim.workload.layers.placed import blocks
from clustersim.workload.mesh import Mesh
from clustersim.workload.model import Model
from clustersim.workload.model_flops import ModelFlops, training_flops
from clustersim.workload.packing import Packing
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import Recipe, find_recipe
from clustersim.workload.process_groups import process_groups
from clustersim.workload.resolve import Resolved, resolve
from clustersim.workload.routing import expert_shards
from clustersim.workload.schedule import Overlapped, Placement, Table, Unit, check, placement_of, units_of
from clustersim.workload.shard import WIDTH, Shard
from clustersim.workload.sharding.groups import parameter_groups
from clustersim.workload.sharding.replicas import Replicas
from clustersim.workload.sharding.strategy import REDUCE_BUCKET, strategy
from clustersim.workload.stage_chunk import StageChunk, stage_chunk
from clustersim.workload.stage_program import stage_program
from clustersim.workload.stage_split import stage_split
from clustersim.workload.variants import Difference, variants

__all__ = ["ledger", "training_step"]


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
        seq_lens=seq_lens,
        seq_seed=seq_seed,
    )
    resolved = resolve(case)
    plan = resolved.plan
    placement = placement_of(resolved.schedule, plan.pp, case.num_virtual)
    table = _table(resolved, placement)
    shard = Shard(
        model=model,
        micro_batch=micro_batch,
        seq_len=seq_len // plan.sequence_slices,
        dtype=dtype if plan.gather_dtype is None else replace(find_recipe(dtype), gathered=plan.gather_dtype),
        gradient_dtype=plan.gradient_dtype or find_recipe(dtype).gradients,
        tp=plan.tp,
        sequence_parallel=bool(plan.sequence_parallel),
        attention=plan.attention,
        dropout=plan.dropout,
        context=case.context,
        slices=plan.sequence_slices,
        replicas=case.replicas,
    )
    copies = len(placement.routes)
    ranks = copies * case.replicas * plan.cp
    dense = Replicas(axis="dp", ranks=ranks, sharding=strategy(plan, shard.recipe)(ranks))
    kinds: tuple[Replicas, ...] = (dense,)
    num_steps = dense.sharding.sync_every
    inner = dense.sharding.inner // plan.cp or 1
    sizes = {"tp": (plan.tp,), "cp": (plan.cp,), "dp": (inner, case.replicas // inner), "pp": (plan.pp,)}
    mesh = Mesh(
        names=tuple(name for axis in plan.axis_order for name in _NAMES.get(axis, (axis,))),
        sizes=tuple(size for axis in plan.axis_order for size in sizes[axis]),
    )
    packing = Packing.of(case)
    contexts = places(shard.context, packing.masks(shard))
    fields: list[Mapping[str, Any]] = [{"context": context} for context in contexts]
    replica = mesh.coordinate("dp_inner") + inner * mesh.coordinate("dp_outer")
    differences = [
        Difference(axis="cp", fields=fields, of_rank=mesh.coordinate("cp")),
        packing.by_replica(replica),
    ]
    experts = None
    if model.experts is not None:
        held = ranks * plan.tp // (plan.ep * (plan.etp or 1))
        kinds = (dense, Replicas(axis="edp", ranks=held, sharding=strategy(plan, shard.recipe)(held)))
        shares = expert_shards(model.experts, plan, rows=shard.rows)
        experts = expert_mesh(plan, dp=case.replicas, inner=kinds[1].sharding.inner)
        fields = [{"experts": share} for share in shares]
        differences.append(Difference(axis="ep", fields=fields, of_rank=experts.coordinate("ep")))
    different = variants(shard, differences)
    programs = []
    for stage, row in enumerate(table):
        for own, place in zip(different.shards, different.places, strict=True):
            shards = packing.shards(own, replica=place.get("dp", 0))
            chunks = [_chunk(stage, c, shards, plan, placement, row, kinds) for c in range(case.num_virtual)]
            programs.append(stage_program(stage, chunks, row, own, plan, kinds))
            programs[-1].name += "".join(f" {axis} {index}" for axis, index in place.items())
    return Job(
        name=name or f"{model.name}-tp{plan.tp}{f'-cp{plan.cp}' if plan.cp > 1 else ''}-pp{plan.pp}-dp{plan.dp}",
        devices=None if devices is None else np.asarray(devices, dtype=np.int64),
        programs=tuple(programs),
        program_of=mesh.coordinate("pp") * len(different.shards) + different.of_rank,
        families=process_groups(
            mesh,
            placement,
            experts=experts,
            tied=model.tied_embeddings or model.mtp > 0,
            ulysses=case.context.ulysses,
        ),
        ledger=ledger(
            model,
            tokens=num_steps * global_batch * seq_len,
            seq_len=seq_len,
            dtype=dtype,
            documents=packing.documents,
        ),
        plan=_as_mapping(plan),
        notes=resolved.notes,
    )


def ledger(
    model: Model, *, tokens: int, seq_len: int, dtype: str | Recipe, documents: Documents | None = None
) -> Ledger:
    """Model FLOP of a step.

    As :func:`clustersim.workload.model_flops.training_flops` counts them: with N matmul parameters that a token meets,
    L layers, a heads of width d and sequences of s tokens, 6·N FLOP a token, and attention 12·L·a·d·s a token over the
    full square and half of it under the causal mask. Of sequences that are packed the square is that of each document.

    Parameters
    ----------
    model : Model
    tokens, seq_len : int
        of the step; of a sequence
    dtype : str or Recipe
    documents : Documents, optional
        of as many sequences as the step has, or of those of each of its optimizer steps
    """
    flops = training_flops(model, seq_len) * (tokens // seq_len)
    if documents is not None:
        lengths = Counter(length for sequence in documents.sequences for length in sequence)
        whole = sum((training_flops(model, length) * count for length, count in lengths.items()), ModelFlops())
        flops = whole * (tokens // (seq_len * len(documents.sequences)))
    return Ledger(
        tokens=tokens,
        samples=tokens // seq_len,
        model_flops=flops.total,
        model_flops_full_attention=flops.total_full_attention,
        dtype=find_recipe(dtype).activation_operand.dtype,
    )


def _chunk(
    stage: int,
    chunk: int,
    shards: Sequence[Shard],
    plan: ParallelPlan,
    placement: Placement,
    row: Sequence[Unit | Overlapped],
    kinds: Sequence[Replicas],
) -> StageChunk:
    """One chunk of a stage: its part of the model for each micro-batch, and the weights that travel with its passes."""
    different = {s.documents: _passes(stage, chunk, s, plan, placement, row, kinds) for s in dict.fromkeys(shards)}
    each = [different[shard.documents] for shard in shards]
    return replace(each[0], passes=tuple(passes for one in each for passes in one.passes))


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


def _table(resolved: Resolved, placement: Placement) -> Table:
    """The schedule's table, proven to end."""
    plan, num_micro_batches = resolved.plan, resolved.num_micro_batches
    num_virtual = plan.vpp or 1
    table = resolved.schedule(plan.pp, num_virtual, num_micro_batches)
    faults = check(
        table,
        num_stages=plan.pp,
        num_virtual=num_virtual,
        num_micro_batches=num_micro_batches,
        placement=placement,
    )
    if faults:
        raise BadInput(faults)
    return table


def _as_mapping(plan: ParallelPlan) -> dict[str, Any]:
    """The resolved plan as plain values."""
    each = plan.zero == 2 if plan.reduce_each is None else plan.reduce_each
    parameters = REDUCE_BUCKET if each else default_bucket_parameters(plan.dp or 1)
    default = parameters * WIDTH[plan.gradient_dtype or "fp32"]
    filled = replace(plan, bucket_bytes=default if plan.bucket_bytes is None else plan.bucket_bytes)
    own = {name: getattr(plan, name) for name in ("schedule", "sharding", "optimizer")}
    return asdict(replace(filled, schedule=None, sharding=None, optimizer="adam")) | {
        **{name: thing if thing is None or isinstance(thing, str) else _name(thing) for name, thing in own.items()},
        "axis_order": list(plan.axis_order),
        "recompute_modules": list(plan.recompute_modules),
        "zeropp": list(plan.zeropp),
    }


def _name(thing: object) -> str:
    """What a user's own schedule, strategy or optimizer is called."""
    return str(getattr(thing, "name", None) or getattr(thing, "__name__", None) or "own")


_NAMES = {"dp": ("dp_inner", "dp_outer")}
"""Axes of the mesh that an axis of the plan is made of, the inner first."""
