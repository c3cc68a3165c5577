"""From a plan's words to a strategy."""

from __future__ import annotations

from functools import partial

from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import WIDTH, Recipe
from clustersim.workload.sharding.hsdp import hsdp
from clustersim.workload.sharding.local_sgd import local_sgd
from clustersim.workload.sharding.sharding import Strategy
from clustersim.workload.sharding.zero import zero
from clustersim.workload.sharding.zeropp import zeropp

__all__ = ["REDUCE_BUCKET", "strategy"]

REDUCE_BUCKET = 500_000_000
"""Gradients that DeepSpeed reduces together, ``reduce_bucket_size`` in elements: ``runtime/zero/config.py``."""


def strategy(plan: ParallelPlan, recipe: Recipe) -> Strategy:
    """What a plan asks for: its own strategy, or the one that its words name.

    Parameters
    ----------
    plan : ParallelPlan
    recipe : Recipe
        gives the bytes of a weight as it is gathered
    """
    if plan.sharding is not None:
        return plan.sharding
    each_step = _each_step(plan, recipe)
    if plan.sync_every is None:
        return each_step
    return partial(
        local_sgd,
        inside=each_step,
        worker=plan.sync_ranks,
        every=plan.sync_every,
        master=recipe.updated_width,
        weight=WIDTH[recipe.weights],
        exchanged=WIDTH[plan.sync_dtype],
        momentum=plan.sync_momentum,
    )


def _each_step(plan: ParallelPlan, recipe: Recipe) -> Strategy:
    weight, gradient = recipe.gathered_width, WIDTH[plan.gradient_dtype or recipe.gradients]
    reduced = None if plan.reduce_dtype is None else WIDTH[plan.reduce_dtype]
    if plan.zeropp:
        return partial(
            zeropp,
            inner=plan.zeropp_ranks,
            parts=plan.zeropp,
            weight=weight,
            gradient=gradient,
            reduced=reduced,
            prefetch=plan.prefetch,
            bounded=plan.limit_gathers,
        )
    stage = 3 if plan.fsdp else plan.zero
    flat = plan.flat_parameters and not plan.per_parameter
    if stage == 3 and plan.hsdp is not None:
        return partial(
            hsdp,
            inner=plan.hsdp,
            weight=weight,
            gradient=gradient,
            reduced=reduced,
            prefetch=plan.prefetch,
            keeps=not plan.reshard,
            each=plan.reduce_each is not False,
            bounded=plan.limit_gathers,
            copies=plan.per_parameter,
            flat=flat,
        )
    return partial(
        zero,
        stage=stage,
        weight=weight,
        gradient=gradient,
        reduced=reduced,
        prefetch=plan.prefetch,
        keeps=not plan.reshard,
        each=plan.reduce_each,
        bucket=REDUCE_BUCKET if plan.bucket_bytes is None else plan.bucket_bytes // gradient,
        bounded=plan.limit_gathers,
        by_block=plan.gather_blocks,
        scatters=plan.reduce_scatter,
        copies=plan.per_parameter,
        flat=flat,
    )
