"""Number formats against each other."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.module_dtypes import PRODUCTS
from clustersim.workload.precision import find_recipe
from clustersim.workload.shard import FP8_ATTENTION

__all__ = ["fp8_attention_faults", "gradient_faults", "module_dtype_faults", "module_dtype_notes"]

_ATTENTION = {"attention", "cross_attention", "latent_attention", "linear_attention"}


def fp8_attention_faults(case: Case) -> Iterator[Fault]:
    """Attention in fp8 is part of a recipe that quantises, over sequences that a rank has whole."""
    plan = case.plan
    if plan.attention != FP8_ATTENTION:
        return
    if find_recipe(case.dtype).quantisation is None:
        rule = f"needs a dtype that quantises, and {case.dtype} does not"
        yield Fault(key="plan.attention", value=plan.attention, rule=rule, nearest="cudnn")
    elif plan.cp > 1:
        rule = f"cannot be simulated yet with cp {plan.cp}"
        yield Fault(key="plan.attention", value=plan.attention, rule=rule, nearest="cudnn")


def gradient_faults(case: Case) -> Iterator[Fault]:
    given, width = case.plan.gradient_dtype, find_recipe(case.dtype).activations
    if given not in (None, "fp32", width):
        rule = f"must be fp32 or the training dtype {width}"
        yield Fault(key="plan.gradient_dtype", value=given, rule=rule, nearest=width)


def module_dtype_faults(case: Case) -> Iterator[Fault]:
    """Layers that are not quantised are some of the model's, and a module has one format."""
    listed = case.plan.module_dtypes
    modules = [item.partition(":")[0] for item in listed]
    for k, module in enumerate(modules):
        if module in modules[:k] and listed[k] not in listed[:k]:
            rule = f"names {module} again, which has one dtype"
            yield Fault(key="plan.module_dtypes", value=listed[k], rule=rule, nearest=listed[modules.index(module)])
    start, end, layers = case.plan.bf16_layers_at_start, case.plan.bf16_layers_at_end, case.model.num_layers
    for name, value, other in (("start", start, 0), ("end", end, max(0, start))):
        room = max(0, layers - other)
        if not 0 <= value <= room:
            rule = f"must be from 0 to the {room} layers of {case.model.name}" + (" that are left" if other else "")
            nearest = min(max(0, value), room)
            yield Fault(key=f"plan.bf16_layers_at_{name}", value=value, rule=rule, nearest=nearest)


def module_dtype_notes(case: Case) -> Iterator[str]:
    """What is listed and changes nothing."""
    plan = case.plan
    keys = {name: getattr(plan, name) for name in ("module_dtypes", "bf16_layers_at_start", "bf16_layers_at_end")}
    given = [f"plan.{name}" for name, value in keys.items() if value]
    if given and find_recipe(case.dtype).quantisation is None:
        yield f"{', '.join(given)}: no effect: dtype {case.dtype} quantises nothing"
        return
    for module in dict.fromkeys(item.partition(":")[0] for item in plan.module_dtypes):
        if not _has(case.model, module):
            yield f"plan.module_dtypes: {module} has no effect: {case.model.name} has no {PRODUCTS[module]}"


def _has(model: Model, module: str) -> bool:
    """Whether a model has products of a module."""
    parts = set(model.num_sublayers())
    if module in ("mamba_in", "mamba_out"):
        return "mamba" in parts
    experts = model.experts if "experts" in parts else None
    found = {
        "attention": bool(parts & _ATTENTION),
        "mlp": "mlp" in parts,
        "experts": experts is not None,
        "shared_experts": experts is not None and experts.num_shared > 0,
        "latent": experts is not None and experts.latent > 0,
        "mtp": model.mtp > 0,
    }
    return found[module]
