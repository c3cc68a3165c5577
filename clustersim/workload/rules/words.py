"""Names, and settings that are true or false, each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import get_args

from clustersim.faults import Fault, nearest_name
from clustersim.workload.captured import CAPTURED
from clustersim.workload.case import Case
from clustersim.workload.context import METHODS
from clustersim.workload.expert_kernels import ExpertKernels
from clustersim.workload.fusion import FUSIONS, LOSSES
from clustersim.workload.gradient_passes import GRADIENT_PASSES
from clustersim.workload.host_calls import LAUNCHES
from clustersim.workload.module_dtypes import MODULE_DTYPES, PRODUCTS
from clustersim.workload.optimizer import OPTIMIZERS
from clustersim.workload.optimizers.separate import UPDATE_KERNELS
from clustersim.workload.placeholders import Placeholders
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import RECIPES, Recipe
from clustersim.workload.recompute import MODULES, Recompute, RecomputeMethod
from clustersim.workload.schedule import SCHEDULES, is_path
from clustersim.workload.shard import WIDTH, Attention
from clustersim.workload.sharding.zeropp import PARTS
from clustersim.workload.unaligned import UnalignedUnits

__all__ = ["word_faults"]


_AXES = ("tp", "cp", "dp", "pp")
_FLAGS = tuple(field.name for field in fields(ParallelPlan) if field.type == "bool")
_OPEN_FLAGS = tuple(field.name for field in fields(ParallelPlan) if field.type == "bool | None")


def word_faults(case: Case) -> Iterator[Fault]:
    """Names, and settings that are true or false."""
    plan = case.plan
    choices: list[tuple[str, object, Sequence[str]]] = [
        ("plan.recompute", plan.recompute, get_args(Recompute)),
        ("plan.recompute_method", plan.recompute_method, get_args(RecomputeMethod)),
        ("plan.attention", plan.attention, get_args(Attention)),
        ("plan.context", plan.context, tuple(METHODS)),
        ("plan.placeholders", plan.placeholders, get_args(Placeholders)),
        ("plan.sync_dtype", plan.sync_dtype, tuple(WIDTH)),
        ("plan.launch", plan.launch, LAUNCHES),
        ("plan.loss", plan.loss, LOSSES),
        ("plan.unaligned", plan.unaligned, get_args(UnalignedUnits)),
        ("plan.expert_kernels", plan.expert_kernels, get_args(ExpertKernels)),
        ("plan.update_kernels", plan.update_kernels, UPDATE_KERNELS),
    ]
    optional = {f"plan.{name}": getattr(plan, name) for name in ("gradient_dtype", "gather_dtype", "reduce_dtype")}
    choices += [(key, given, tuple(WIDTH)) for key, given in optional.items() if given is not None]
    lists: tuple[tuple[str, object, Sequence[str]], ...] = (
        ("plan.recompute_modules", plan.recompute_modules, tuple(MODULES)),
        ("plan.module_dtypes", plan.module_dtypes, MODULE_DTYPES),
        ("plan.zeropp", plan.zeropp, PARTS),
        ("plan.fusion", plan.fusion, tuple(FUSIONS)),
        ("plan.cuda_graphs", plan.cuda_graphs, CAPTURED),
        ("plan.gradient_passes", plan.gradient_passes, GRADIENT_PASSES),
    )
    for key, listed, names in lists:
        if isinstance(listed, list | tuple):
            choices += [(key, name, names) for name in listed]
        else:
            rule = f"must be a list of some of {', '.join(names)}"
            yield Fault(key=key, value=listed, rule=rule, nearest=[listed] if listed in names else [names[0]])
    if not callable(getattr(plan.optimizer, "state_nbytes", None)):
        choices.append(("plan.optimizer", plan.optimizer, tuple(OPTIMIZERS)))
    if not (plan.schedule is None or callable(plan.schedule) or is_path(plan.schedule)):
        choices.append(("plan.schedule", plan.schedule, tuple(SCHEDULES)))
    if not isinstance(case.dtype, Recipe):
        choices.append(("dtype", case.dtype, tuple(RECIPES)))
    for key, value, names in choices:
        if value not in names:
            nearest = nearest_name(str(value), names) or names[0]
            legal = f"module:dtype of {', '.join(PRODUCTS)}" if names is MODULE_DTYPES else f"one of {', '.join(names)}"
            yield Fault(key=key, value=value, rule=f"must be {legal}", nearest=nearest)
    for name in (*_FLAGS, *_OPEN_FLAGS):
        value = getattr(plan, name)
        if not isinstance(value, bool) and not (name in _OPEN_FLAGS and value is None):
            yield Fault(key=f"plan.{name}", value=value, rule="must be true or false", nearest=bool(value))
    sharding: object = plan.sharding
    if sharding is not None and not callable(sharding):
        rule = "must be a callable: ranks that hold the same weights -> Sharding"
        yield Fault(key="plan.sharding", value=sharding, rule=rule)
    order = plan.axis_order if isinstance(plan.axis_order, list | tuple) else ()
    if sorted(map(str, order)) != sorted(_AXES):
        yield Fault(
            key="plan.axis_order",
            value=plan.axis_order,
            rule=f"must name each of {', '.join(_AXES)} once, innermost first",
            nearest=_AXES,
        )
