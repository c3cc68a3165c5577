"""Whether the job of a measured step has room on its GPUs."""

from __future__ import annotations

from functools import lru_cache

from clustersim.study.steps.step_job import MeasuredStep, StepJob
from clustersim.study.steps.timing import step_time
from clustersim.workload.optimizer import find_optimizer
from clustersim.workload.optimizers.elementwise import Elementwise
from clustersim.workload.precision import WIDTH, find_recipe

__all__ = ["fits"]


def fits(measured: MeasuredStep) -> bool:
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
