"""What makes a plan legal for the experts of a model, and which of its settings do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.workload.case import Case
from clustersim.workload.exchange import Dispatch
from clustersim.workload.expert_mesh import stages_agree
from clustersim.workload.precision import find_recipe
from clustersim.workload.token_load import token_load

__all__ = ["EXPERT_KEYS", "expert_faults", "expert_notes", "expert_values", "mtp_faults"]

_DEFAULTS = {
    "etp": None,
    "capacity_factor": None,
    "token_imbalance": "uniform",
    "token_seed": 0,
    "dispatch": "all_to_all",
    "overlap_dispatch": 1,
    "overlap_shared": False,
    "fp8_dispatch": False,
    "fp8_activation_input": False,
}

EXPERT_KEYS = ("plan.ep", *(f"plan.{name}" for name in _DEFAULTS))
"""Settings of which :func:`expert_values` checks each by itself, but for ``plan.ep``."""


def expert_values(case: Case) -> Iterator[Fault]:
    """Each setting by itself."""
    plan = case.plan
    for name, value, least in (
        ("etp", 1 if plan.etp is None else plan.etp, 1),
        ("overlap_dispatch", plan.overlap_dispatch, 1),
        ("token_seed", plan.token_seed, 0),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            rule = f"must be a whole number from {least}"
            yield Fault(key=f"plan.{name}", value=value, rule=rule, nearest=least)
    factor = plan.capacity_factor
    if factor is not None and not (isinstance(factor, int | float) and 0 < factor < 2**20):
        yield Fault(key="plan.capacity_factor", value=factor, rule="must be a positive number", nearest=1.0)
    if plan.dispatch not in get_args(Dispatch):
        names = get_args(Dispatch)
        nearest = nearest_name(str(plan.dispatch), names) or names[0]
        yield Fault(
            key="plan.dispatch", value=plan.dispatch, rule=f"must be one of {', '.join(names)}", nearest=nearest
        )


def expert_faults(case: Case) -> Iterator[Fault]:
    """Settings against the model, the other degrees and each other."""
    plan, experts = case.plan, case.model.experts
    if experts is None:
        if plan.ep > 1:
            rule = f"must be 1: {case.model.name} has no experts"
            yield Fault(key="plan.ep", value=plan.ep, rule=rule, nearest=1)
        return
    etp, ranks = plan.etp or 1, case.replicas * plan.cp * plan.tp
    stage = f"the {ranks} ranks of a stage, dp {case.replicas} x cp {plan.cp} x tp {plan.tp}"
    fits = [n for n in range(1, experts.num_experts + 1) if experts.num_experts % n == 0 and ranks % (n * etp) == 0]
    nearest = min(fits, key=lambda n: abs(n - plan.ep), default=1)
    if experts.num_experts % plan.ep:
        rule = f"must divide the {experts.num_experts} experts"
        yield Fault(key="plan.ep", value=plan.ep, rule=rule, nearest=nearest)
    elif ranks % etp:
        pass
    elif ranks % (plan.ep * etp):
        rule = f"x etp {etp} must divide {stage}"
        yield Fault(key="plan.ep", value=plan.ep, rule=rule, nearest=nearest)
    elif not stages_agree(plan, dp=case.replicas):
        rule = f"must have pp first or last: ep {plan.ep} and etp {etp} divide the ranks of a stage in another way"
        yield Fault(key="plan.axis_order", value=plan.axis_order, rule=rule, nearest=("tp", "cp", "dp", "pp"))
    else:
        yield from _replicas(case, ranks // (plan.ep * etp))
    if experts.ffn_hidden % etp or ranks % etp:
        widths = [n for n in range(1, min(etp - 1, ranks) + 1) if experts.ffn_hidden % n == 0 and ranks % n == 0]
        whole = f"the width of an expert, {experts.ffn_hidden}" if experts.ffn_hidden % etp else stage
        rule = f"must divide {whole}"
        yield Fault(key="plan.etp", value=etp, rule=rule, nearest=widths[-1])
    if experts.shared_ffn_hidden % plan.tp:
        widths = [
            n for n in range(1, min(plan.tp - 1, experts.shared_ffn_hidden) + 1) if experts.shared_ffn_hidden % n == 0
        ]
        rule = f"must divide the width of the shared experts, {experts.shared_ffn_hidden}"
        yield Fault(key="plan.tp", value=plan.tp, rule=rule, nearest=widths[-1])
    if plan.tp > 1 and plan.sequence_parallel is False:
        rule = f"must be true with experts and tp {plan.tp}: each rank routes its own tokens, as in Megatron-Core"
        yield Fault(key="plan.sequence_parallel", value=False, rule=rule, nearest=True)
    if plan.dropout:
        rule = "must be false with experts: no step is written for it"
        yield Fault(key="plan.dropout", value=True, rule=rule, nearest=False)
    yield from _tokens(case)


def mtp_faults(case: Case) -> Iterator[Fault]:
    """What modules that predict further tokens do not go with."""
    plan, mtp = case.plan, case.model.mtp
    if mtp and plan.recompute == "full" and plan.recompute_method == "uniform" and (plan.recompute_layers or 1) > 1:
        rule = "must be 1 with modules that predict further tokens"
        yield Fault(key="plan.recompute_layers", value=plan.recompute_layers, rule=rule, nearest=1)


def _replicas(case: Case, ranks: int) -> Iterator[Fault]:
    """How replicas of experts divide them among themselves."""
    plan = case.plan
    splits = plan.sharding is None and (plan.fsdp or plan.zero == 3)
    if splits and plan.hsdp is not None and ranks % min(plan.hsdp, ranks):
        fits = [n for n in range(1, ranks + 1) if ranks % n == 0]
        nearest = min(fits, key=lambda n: abs(n - (plan.hsdp or 1)))
        rule = f"must divide the {ranks} ranks that hold the same experts"
        yield Fault(key="plan.hsdp", value=plan.hsdp, rule=rule, nearest=nearest)
    for name, given, nearest_value in (("sync_every", plan.sync_every, None), ("zeropp", plan.zeropp, [])):
        if given:
            rule = "is not yet supported for a model with experts"
            yield Fault(key=f"plan.{name}", value=given, rule=rule, nearest=nearest_value)


def _tokens(case: Case) -> Iterator[Fault]:
    """How tokens are sent."""
    plan, experts = case.plan, case.model.experts
    if experts is None:
        return
    rows = case.micro_batch * case.seq_len // plan.cp // (plan.tp if case.sequence_parallel else 1)
    if plan.overlap_dispatch > rows:
        rule = f"must be at most the {rows} tokens that a rank routes"
        yield Fault(key="plan.overlap_dispatch", value=plan.overlap_dispatch, rule=rule, nearest=rows)
    if find_recipe(case.dtype).quantisation is None:
        rule = f"must be false with dtype {case.dtype}, which quantises nothing"
        for name in ("fp8_dispatch", "fp8_activation_input"):
            if getattr(plan, name):
                yield Fault(key=f"plan.{name}", value=True, rule=rule, nearest=False)
    if plan.dispatch != "all_to_all" and plan.capacity_factor is None and plan.token_imbalance != "uniform":
        rule = "must be all_to_all with a token_imbalance: no other way is written for unequal parts"
        yield Fault(key="plan.dispatch", value=plan.dispatch, rule=rule, nearest="all_to_all")
    if experts.num_experts % plan.ep:
        return
    try:
        token_load(
            plan.token_imbalance,
            num_experts=experts.num_experts,
            top_k=experts.top_k,
            ep=plan.ep,
            seed=plan.token_seed,
        )
    except BadInput as error:
        yield from error.faults


def expert_notes(case: Case) -> Iterator[str]:
    """Settings without effect, and what is dropped."""
    plan, experts = case.plan, case.model.experts
    changed = [name for name, default in _DEFAULTS.items() if getattr(plan, name) != default]
    if experts is None:
        for name in changed:
            yield f"plan.{name}: no effect: {case.model.name} has no experts"
        if plan.expert_kernels != "grouped":
            yield f"plan.expert_kernels: no effect: {case.model.name} has no experts"
        return
    if plan.expert_kernels == "each" and experts.num_experts == plan.ep:
        yield "plan.expert_kernels: no effect with one expert a rank"
    if plan.ep == 1:
        for name in ("dispatch", "overlap_dispatch", "fp8_dispatch"):
            if name in changed:
                yield f"plan.{name}: no effect with ep 1"
    if plan.overlap_shared and (plan.ep == 1 or not experts.num_shared):
        yield f"plan.overlap_shared: no effect {'with ep 1' if experts.num_shared else 'without shared experts'}"
    if plan.token_seed and not str(plan.token_imbalance).startswith("zipf"):
        yield "plan.token_seed: no effect without plan.token_imbalance zipf"
    if plan.capacity_factor is not None:
        yield from _dropped(case)


def _dropped(case: Case) -> Iterator[str]:
    """How many tokens find no room; the model FLOP count them all the same."""
    plan, experts = case.plan, case.model.experts
    if experts is None or plan.capacity_factor is None:
        return
    load = token_load(
        plan.token_imbalance,
        num_experts=experts.num_experts,
        top_k=experts.top_k,
        ep=plan.ep,
        seed=plan.token_seed,
    )
    most = plan.capacity_factor * experts.top_k / experts.num_experts
    if load is None:
        kept = min(plan.capacity_factor, 1.0)
    else:
        kept = float(load.part.clip(max=most).sum(axis=1).mean()) / experts.top_k
    if kept < 1 - 1e-9:
        yield f"plan.capacity_factor: {1 - kept:.1%} of the copies of tokens are dropped, and counted as model FLOP"
    if kept < plan.capacity_factor:
        padding = 1 - kept / plan.capacity_factor
        yield f"plan.capacity_factor: {padding:.1%} of the rows of the experts are padding"
