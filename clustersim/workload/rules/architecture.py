"""What a model's kind asks of a plan, and what it leaves without effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.optimizers.muon import Muon
from clustersim.workload.precision import find_recipe

__all__ = ["ARCHITECTURE_KEYS", "architecture_faults", "architecture_notes"]

ARCHITECTURE_KEYS = (
    "plan.pp",
    "plan.tp",
    "seq_len",
    "plan.recompute",
    "plan.recompute_method",
    "plan.recompute_layers",
    "plan.sequence_slices",
    "plan.sequence_parallel",
    "plan.zero",
    "plan.tp_overlap",
    "plan.vpp",
    "plan.split",
    "plan.stage_layers",
    "dtype",
)
"""Settings that must be legal by themselves before they are held against the model."""

_PARTS: Mapping[str, tuple[str, frozenset[str]]] = {
    "core": ("attention", frozenset({"attention", "latent_attention", "linear_attention", "cross_attention"})),
    "activation": ("MLP", frozenset({"mlp", "experts"})),
    "second_products": ("plain attention and no plain MLP", frozenset({"attention", "mlp"})),
    "mla_up": ("latent attention", frozenset({"latent_attention"})),
    "experts": ("experts", frozenset({"experts"})),
    "moe": ("experts", frozenset({"experts"})),
}
"""Parts that can be computed again -> what has them, in words and as sublayers; norms are everywhere."""


def architecture_faults(case: Case) -> Iterator[Fault]:
    """Images have as many tokens as patches; two stacks stand on one stage; adapters and slices ask for more."""
    model, plan = case.model, case.plan
    if model.patches is not None and case.seq_len != model.patches.num_tokens:
        tokens = model.patches.num_tokens
        yield Fault(key="seq_len", value=case.seq_len, rule=f"must be the {tokens} tokens of an image", nearest=tokens)
    if model.adapters is not None:
        yield from _adapters(case)
    if plan.sequence_slices > 1:
        yield from _slices(case)
    if model.encoder is not None:
        yield from _two_stacks(case, "an encoder and a decoder", model.encoder.num_layers, ("pp",))
    if model.tower is not None:
        yield from _two_stacks(case, "two towers", model.num_layers, ("tp", "pp"))


def _two_stacks(case: Case, what: str, layers: int, degrees: tuple[str, ...]) -> Iterator[Fault]:
    """Two stacks stand on one stage, and groups of layers that are computed again do not reach from one to the other.

    Parameters
    ----------
    case : Case
    what : str
        the stacks are
    layers : int
        of the first
    degrees : tuple[str, ...]
        of the plan, that must be 1
    """
    plan = case.plan
    for name in degrees:
        if getattr(plan, name) > 1:
            rule = f"must be 1: no step is written for {what} on several {'ranks' if name == 'tp' else 'stages'}"
            yield Fault(key=f"plan.{name}", value=getattr(plan, name), rule=rule, nearest=1)
    group = plan.recompute_layers or 1
    if plan.recompute == "full" and plan.recompute_method != "uniform" and plan.recompute_layers is not None:
        rule = f"must be uniform: no step is written for the first layers of {what}"
        yield Fault(key="plan.recompute_method", value=plan.recompute_method, rule=rule, nearest="uniform")
    elif plan.recompute == "full" and layers % group:
        fits = [n for n in range(1, layers + 1) if layers % n == 0]
        nearest = min(fits, key=lambda n: (abs(n - group), n))
        rule = f"must divide the {layers} layers of the first of {what}"
        yield Fault(key="plan.recompute_layers", value=group, rule=rule, nearest=nearest)


def _adapters(case: Case) -> Iterator[Fault]:
    """Adapters sit on whole matrices that are held whole, and every stage has some."""
    model, plan = case.model, case.plan
    others = [name for name in ("encoder", "tower", "mtp", "layout") if getattr(model, name)]
    if others:
        rule = f"cannot be simulated yet with adapters and {', '.join(others)}"
        yield Fault(key="model", value=model.name, rule=rule)
    if case.num_virtual_stages > model.num_layers:
        rule = f"leaves a stage without adapters: must be at most the {model.num_layers} layers"
        yield Fault(key="plan.pp", value=plan.pp, rule=rule, nearest=model.num_layers // case.num_virtual or 1)
    settings = (
        ("split", plan.split, "layers", plan.split == "layers" or case.num_virtual_stages == 1),
        ("stage_layers", plan.stage_layers, None, 0 not in (plan.stage_layers or ())),
        ("tp", plan.tp, 1, plan.tp == 1),
        ("ep", plan.ep, 1, plan.ep == 1 or not (plan.fsdp or plan.zero == 3)),
        ("sharding", "own", None, plan.sharding is None),
    )
    for name, value, nearest, fits in settings:
        if not fits:
            rule = "no step is written for it with adapters beside frozen weights"
            yield Fault(key=f"plan.{name}", value=value, rule=rule, nearest=nearest)


def _slices(case: Case) -> Iterator[Fault]:
    """Slices pass a state on, which only linear attention has, and are computed again as a whole."""
    model, plan, slices = case.model, case.plan, case.plan.sequence_slices
    mixers = sorted(set(model.num_sublayers()) - {"linear_attention", "mlp"})
    if mixers or not model.causal or model.mtp:
        rule = f"must be 1: {model.name} is not made of causal linear attention and MLPs alone"
        yield Fault(key="plan.sequence_slices", value=slices, rule=rule, nearest=1)
        return
    each = plan.tp if case.sequence_parallel else 1
    if case.seq_len % (slices * each):
        fits = [n for n in range(1, case.seq_len // each + 1) if case.seq_len % (n * each) == 0]
        nearest = min(fits, key=lambda n: (abs(n - slices), n)) if fits else None
        rule = f"must divide the {case.seq_len} tokens of a sequence" + (f", over tp {each}" if each > 1 else "")
        yield Fault(key="plan.sequence_slices", value=slices, rule=rule, nearest=nearest)
    others = (
        ("pp", plan.pp, 1, plan.pp == 1),
        ("zero", plan.zero, 1, plan.zero < 2),
        ("fsdp", plan.fsdp, False, not plan.fsdp),
        ("reduce_each", plan.reduce_each, False, not plan.reduce_each),
        ("sharding", "own", None, plan.sharding is None),
        ("recompute", plan.recompute, "none", plan.recompute == "none"),
        ("tp_overlap", plan.tp_overlap, "none", plan.tp_overlap == "none"),
    )
    for name, value, nearest_value, fits_slices in others:
        if not fits_slices:
            rule = f"no step is written for it in slices of the sequence (plan.sequence_slices {slices})"
            yield Fault(key=f"plan.{name}", value=value, rule=rule, nearest=nearest_value)


def architecture_notes(case: Case) -> Iterator[str]:
    """What was taken as it was not said, and settings without effect."""
    model, plan = case.model, case.plan
    if model.encoder is not None:
        yield f"encoder and decoder read {case.seq_len} tokens each"
    if model.tower is not None:
        yield f"an image and {case.seq_len} tokens of text are a pair; {case.replicas} replicas compare theirs"
    if plan.recompute == "selective":
        for name in dict.fromkeys(plan.recompute_modules):
            what, sublayers = _PARTS.get(name, ("", frozenset()))
            if what and sublayers.isdisjoint(model.num_sublayers()):
                yield f"plan.recompute_modules: {name} has no effect: {model.name} has no {what}"
    if model.adapters is not None and find_recipe(case.dtype).quantisation is not None:
        yield f"dtype: {case.dtype} beside adapters: quantised copies of frozen weights and their casts are left out"
    if model.adapters is not None and (plan.optimizer == "muon" or isinstance(plan.optimizer, Muon)):
        yield "plan.optimizer: muon finds no hidden matrix among adapters, and updates them as adamw"
    if plan.attention == "unfused" and model.linear is not None:
        yield f"plan.attention: no effect: {model.name} has linear attention"
    if plan.attention == "unfused" and model.window is not None and case.seq_len > model.window.tokens:
        yield "plan.attention: unfused kernels compute the whole square, window or not"
