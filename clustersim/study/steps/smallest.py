"""Rows that tell neither tensor- nor pipeline-parallel degrees: the fewest GPUs a replica that hold the model."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from clustersim.faults import BadInput
from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.job_card import card_job
from clustersim.study.steps.recipes import recipe_of
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.step_job import MeasuredStep, StepJob, place
from clustersim.study.steps.timing import step_time
from clustersim.workload.optimizer import find_optimizer
from clustersim.workload.optimizers.elementwise import Elementwise
from clustersim.workload.precision import WIDTH, find_recipe

__all__ = ["placed"]

_TP = (1, 2, 4, 8)
"""Tensor parallelism stays within a node of eight, and divides the heads."""


def placed(row: StepRow) -> MeasuredStep:
    """The job of a row.

    Where neither its degrees nor a recipe are published, and its job is no card, that of the smallest tp x pp that fits
    in memory, of equal products the one with more tensor parallelism; first without recomputation, then, where none
    fits and the row does not tell, with all of it.

    Raises
    ------
    RefusedError
        with a reason of the closed list
    """
    known = recipe_of(row)[0]
    told = known.tp is not None or known.pp is not None or known.gpus in (None, 1)
    if told or card_job(row) is not None:
        return place(row)
    first: RefusedError | None = None
    for recompute in [row.recompute] if row.recompute else ["no", "full"]:
        for degrees in _degrees(known):
            try:
                tp, pp = degrees
                measured = place(replace(row, recompute=recompute, cp=row.cp or 1, tp=tp, pp=pp))
                if _fits(measured):
                    text = f"layout: tp {tp}, pp {pp}, recompute {recompute}: the fewest GPUs a replica that hold it"
                    return replace(measured, row=row, assumptions=(*measured.assumptions, text), published=False)
            except RefusedError as refusal:
                first = first or refusal
            except BadInput:
                continue
    raise first or RefusedError("layout", f"{row.gpus} GPUs without tp and pp, and no tp x pp fits")


def _degrees(row: StepRow) -> list[tuple[int, int]]:
    """tp and pp whose product divides the row's GPUs, the smallest first; stages have equally many layers."""
    gpus, layers = row.gpus or 1, row.layers or 1
    found = [
        (tp, pp)
        for tp in _TP
        for pp in range(1, layers + 1)
        if layers % pp == 0 and gpus % (tp * pp * (row.cp or 1)) == 0
    ]
    return sorted(found, key=lambda degrees: (degrees[0] * degrees[1], -degrees[0]))


def _fits(measured: MeasuredStep) -> bool:
    """Whether it does with as many micro-batches as fill its pipeline."""
    job = measured.job
    if _least_nbytes(job) > max(gpu.memory_bytes for gpu in job.machine.topology().gpus):  # which is soon told
        return False
    return _holds(job.with_micro_batches(min(job.num_micro_batches, job.plan.pp)))


def _least_nbytes(job: StepJob) -> int:
    """What the fullest GPU holds throughout at least, as far as it is whole or evenly shared [B]."""
    plan, recipe = job.plan, find_recipe(job.dtype)
    if plan.fsdp or plan.zero > 1 or plan.offload is not None:
        return 0
    share = job.model.num_parameters // (plan.tp * plan.pp * plan.ep)
    nbytes = share * (WIDTH[recipe.weights] + WIDTH[plan.gradient_dtype or recipe.gradients])
    optimizer, shards = find_optimizer(plan.optimizer), (plan.dp or 1) * plan.cp if plan.zero else 1
    if recipe.master is not None:
        nbytes += WIDTH[recipe.master] * (share // shards)
    if isinstance(optimizer, Elementwise):
        nbytes += optimizer.state_nbytes(share, recipe=recipe, shards=shards)
    return nbytes


@lru_cache(maxsize=1024)
def _holds(job: StepJob) -> bool:
    """Whether every GPU has room: many rows of a file ask for the same few jobs."""
    return step_time(job).fits
