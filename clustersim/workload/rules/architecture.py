"""What a model's kind asks of a plan, and what it leaves without effect."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case

__all__ = ["architecture_faults", "architecture_notes"]

_ATTENDING = {"attention", "latent_attention", "cross_attention"}


def architecture_faults(case: Case) -> Iterator[Fault]:
    """Images have as many tokens as patches; an encoder and its decoder stand on one stage."""
    model, plan = case.model, case.plan
    if model.patches is not None and case.seq_len != model.patches.num_tokens:
        tokens = model.patches.num_tokens
        yield Fault(key="seq_len", value=case.seq_len, rule=f"must be the {tokens} tokens of an image", nearest=tokens)
    if model.encoder is None:
        return
    for name in ("pp", "cp"):
        value = getattr(plan, name)
        if value > 1:
            rule = "must be 1: no step is written for an encoder and a decoder on several stages or over parts of them"
            yield Fault(key=f"plan.{name}", value=value, rule=rule, nearest=1)
    layers, group = model.encoder.num_layers, plan.recompute_layers or 1
    if plan.recompute == "full" and (plan.recompute_method != "uniform" and plan.recompute_layers is not None):
        rule = "must be uniform: no step is written for the first layers of an encoder and its decoder"
        yield Fault(key="plan.recompute_method", value=plan.recompute_method, rule=rule, nearest="uniform")
    elif plan.recompute == "full" and layers % group:
        fits = [n for n in range(1, layers + 1) if layers % n == 0]
        nearest = min(fits, key=lambda n: (abs(n - group), n))
        rule = f"must divide the {layers} layers of the encoder"
        yield Fault(key="plan.recompute_layers", value=group, rule=rule, nearest=nearest)


def architecture_notes(case: Case) -> Iterator[str]:
    """What was taken as it was not said, and settings without effect."""
    model, plan = case.model, case.plan
    if model.encoder is not None:
        yield f"encoder and decoder read {case.seq_len} tokens each"
    if plan.recompute == "selective":
        if "mla_up" in plan.recompute_modules and model.latent is None:
            yield f"plan.recompute_modules: mla_up has no effect: {model.name} has no latent attention"
        if "core" in plan.recompute_modules and not _ATTENDING & set(model.num_sublayers()):
            yield f"plan.recompute_modules: core has no effect: {model.name} has no attention of that kind"
    if plan.attention == "unfused" and model.window is not None and case.seq_len > model.window.tokens:
        yield "plan.attention: unfused kernels compute the whole square, window or not"
