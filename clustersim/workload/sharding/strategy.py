"""From a plan's words to a strategy."""

from __future__ import annotations

from functools import partial

from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import WIDTH, Recipe
from clustersim.workload.sharding.hsdp import hsdp
from clustersim.workload.sharding.sharding import Strategy
from clustersim.workload.sharding.zero import zero

__all__ = ["strategy"]


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
    weight, gradient = recipe.gathered_width, WIDTH[plan.gradient_dtype]
    stage = 3 if plan.fsdp else plan.zero
    if stage == 3 and plan.hsdp is not None:
        return partial(
            hsdp,
            inner=plan.hsdp,
            weight=weight,
            gradient=gradient,
            prefetch=plan.prefetch,
            keeps=not plan.reshard,
            each=plan.reduce_each,
        )
    return partial(
        zero,
        stage=stage,
        weight=weight,
        gradient=gradient,
        prefetch=plan.prefetch,
        keeps=not plan.reshard,
        each=plan.reduce_each,
    )
