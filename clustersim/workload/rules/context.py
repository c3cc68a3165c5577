"""Ranks that share a sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.context import Method

__all__ = ["CONTEXT_KEYS", "context_faults", "context_notes"]

CONTEXT_KEYS = ("plan.cp", "plan.tp", "plan.context", "plan.ulysses", "plan.sequence_parallel")
"""Settings that must be legal by themselves, beside model, length and attention."""

_SUBLAYERS = frozenset({"attention", "latent_attention", "mlp", "experts"})
_WHOLE = ("encoder", "patches", "tower", "pooler", "num_classes")
"""Fields of models that look at one token, or another number of them, than the sequence that is shared."""


def context_faults(case: Case) -> Iterator[Fault]:
    """Settings against the model, the length of a sequence and each other."""
    plan, model = case.plan, case.model
    if plan.context == "hybrid" and (plan.ulysses is None or plan.cp % plan.ulysses):
        rule = f"must be given with hybrid and divide cp {plan.cp}"
        given = plan.ulysses or 1
        nearest = min((n for n in range(1, plan.cp + 1) if plan.cp % n == 0), key=lambda n: abs(n - given))
        yield Fault(key="plan.ulysses", value=plan.ulysses, rule=rule, nearest=nearest)
        return
    if plan.cp == 1:
        return
    if plan.attention == "unfused":
        rule = f"must be flash with cp {plan.cp}: ranks pass on rows of its statistics"
        yield Fault(key="plan.attention", value=plan.attention, rule=rule, nearest="flash")
    others = sorted(set(model.num_sublayers()) - _SUBLAYERS) + [name for name in _WHOLE if getattr(model, name)]
    others += ["relative positions"] if model.positions == "relative" else []
    if others:
        rule = f"cannot be simulated yet above 1 with {', '.join(others)} of {model.name}"
        yield Fault(key="plan.cp", value=plan.cp, rule=rule, nearest=1)
        return
    if model.window and case.seq_len > model.window.tokens and case.context.across > 1 and plan.context != "all_gather":
        rule = f"must be all_gather or ulysses with the sliding window of {model.window.tokens} tokens of {model.name}"
        yield Fault(key="plan.context", value=plan.context, rule=rule, nearest="all_gather")
    yield from _heads(case)
    yield from _length(case)


def _heads(case: Case) -> Iterator[Fault]:
    """Exchanged heads are whole."""
    plan, model, given = case.plan, case.model, case.context.ulysses
    heads = model.num_heads // plan.tp
    kv_heads = heads if model.latent else max(1, model.num_kv_heads // plan.tp)
    fits = [n for n in range(1, given) if heads % n == 0 and kv_heads % n == 0 and plan.cp % n == 0]
    if heads % given or kv_heads % given:
        key = "plan.ulysses" if plan.context == "hybrid" else "plan.cp"
        rule = f"must divide the {heads} query and {kv_heads} key and value heads of a rank with tp {plan.tp}"
        yield Fault(key=key, value=given, rule=rule, nearest=fits[-1])


def _length(case: Case) -> Iterator[Fault]:
    """Ranks have equally many tokens, in equal parts."""
    plan, seq_len = case.plan, case.seq_len
    balanced = ("zigzag", "all_gather", "gathered_ring")
    twice = plan.context in balanced or (plan.context == "hybrid" and case.context.across > 1)
    tp = plan.tp if case.sequence_parallel else 1
    each = (2 if twice else 1) * plan.cp * tp
    if seq_len % each:
        factors = [*(["2"] if twice else []), f"cp {plan.cp}", *([f"tp {tp}"] if tp > 1 else [])]
        rule = f"must be a multiple of {' x '.join(factors)} = {each} with context parallelism"
        most = case.model.max_seq_len // each if case.model.positions == "learned" else seq_len
        yield Fault(key="seq_len", value=seq_len, rule=rule, nearest=max(1, min(most, round(seq_len / each))) * each)


def context_notes(case: Case) -> Iterator[str]:
    """Settings without effect, and what is left out."""
    plan = case.plan
    if plan.cp == 1:
        for name, default in (("context", get_args(Method)[0]), ("ulysses", None)):
            if getattr(plan, name) != default:
                yield f"plan.{name}: no effect with cp 1"
        return
    if plan.ulysses is not None and plan.context != "hybrid":
        yield f"plan.ulysses: no effect with plan.context {plan.context}"
    if plan.context == "ring":
        yield "plan.context: ring gives later ranks more work, so that the ranks of cp are simulated one by one"
    if case.model.mtp:
        yield "mtp: the tokens at the ends of parts of a sequence, which ranks of cp pass on, are left out"
