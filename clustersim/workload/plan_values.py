"""A resolved plan as plain values, for what is written beside a result."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from clustersim.workload.buckets import default_bucket_parameters
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import WIDTH
from clustersim.workload.sharding.strategy import REDUCE_BUCKET

__all__ = ["plan_values"]


def plan_values(plan: ParallelPlan) -> dict[str, Any]:
    """Every setting of a resolved plan by name; a user's own schedule, strategy or optimizer as what it is called."""
    each = plan.zero == 2 if plan.reduce_each is None else plan.reduce_each
    parameters = REDUCE_BUCKET if each else default_bucket_parameters(plan.dp or 1)
    default = parameters * WIDTH[plan.gradient_dtype or "fp32"]
    filled = replace(plan, bucket_bytes=default if plan.bucket_bytes is None else plan.bucket_bytes)
    own = {name: getattr(plan, name) for name in ("schedule", "sharding", "optimizer")}
    offload = None if plan.offload is None else {"policy": plan.offload.name, **asdict(plan.offload)}
    saves = None if plan.checkpoint is None else {"policy": plan.checkpoint.name, **asdict(plan.checkpoint)}
    bare = replace(filled, schedule=None, sharding=None, optimizer="adam", offload=None, checkpoint=None)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(bare).items()}
    return plain | {
        "offload": offload,
        "checkpoint": saves,
        **{name: thing if thing is None or isinstance(thing, str) else _name(thing) for name, thing in own.items()},
    }


def _name(thing: object) -> str:
    return str(getattr(thing, "name", None) or getattr(thing, "__name__", None) or "own")
