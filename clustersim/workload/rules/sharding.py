"""What makes the words on data parallelism legal together, and which of them have nothing to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clustersim.faults import Fault, unfit_call
from clustersim.workload.case import Case
from clustersim.workload.sharding.coherent import incoherent
from clustersim.workload.sharding.sharding import Sharding

__all__ = ["SHARDING_KEYS", "sharding_faults", "sharding_notes"]

SHARDING_KEYS = (
    "plan.sharding",
    "plan.zero",
    "plan.fsdp",
    "plan.hsdp",
    "plan.zeropp",
    "plan.zeropp_ranks",
    "plan.sync_every",
    "plan.sync_ranks",
    "plan.reshard",
    "plan.reduce_each",
)
"""Settings that must be legal by themselves before they are held against each other."""

_SHARDING: Mapping[str, object] = {
    "hsdp": None,
    "prefetch": 1,
    "reshard": True,
    "limit_gathers": True,
    "gather_blocks": False,
    "reduce_scatter": True,
    "per_parameter": False,
    "flat_parameters": False,
    "reduce_each": None,
    "gather_dtype": None,
    "reduce_dtype": None,
    "zeropp": (),
    "sync_every": None,
    "sync_ranks": 1,
    "sync_dtype": "fp32",
    "sync_momentum": True,
}
"""Words on sharding and their defaults."""


def sharding_faults(case: Case) -> Iterator[Fault]:
    """Groups inside data parallelism divide it, one kind of them at a time; an own strategy is coherent."""
    plan, ranks = case.plan, case.replicas * case.plan.cp
    inner: dict[str, object] = {}
    if plan.sharding is None:
        inner |= {"zeropp": ", ".join(plan.zeropp)} if plan.zeropp else {}
        inner |= {"hsdp": plan.hsdp} if plan.hsdp is not None and (plan.fsdp or plan.zero == 3) else {}
        inner |= {"sync_every": plan.sync_every} if plan.sync_every is not None else {}
    if len(inner) > 1:
        last = list(inner)[-1]
        rule = f"cannot go with plan.{next(iter(inner))}: each divides the ranks of data parallelism in its own way"
        yield Fault(key=f"plan.{last}", value=inner[last], rule=rule)
        return
    sizes = {"zeropp": ("zeropp_ranks", 2), "hsdp": ("hsdp", 1), "sync_every": ("sync_ranks", 1)}
    for name in inner:
        key, least = sizes[name]
        given = getattr(plan, key)
        legal = [n for n in range(plan.cp, ranks + 1, plan.cp) if ranks % n == 0 and n >= least]
        if given not in legal and not (name == "zeropp" and given > ranks):
            rule = (
                f"must divide the {ranks} ranks of data parallelism, dp {case.replicas} x cp {plan.cp}, "
                f"in multiples of cp{', from 2' if least == 2 else ''}"
            )
            nearest = min(legal, key=lambda n: abs(n - given), default=None)
            yield Fault(key=f"plan.{key}", value=given, rule=rule, nearest=nearest)
    if plan.zeropp and not (plan.fsdp or plan.zero == 3):
        yield Fault(key="plan.zeropp", value=", ".join(plan.zeropp), rule="needs plan.zero 3", nearest=[])
    if plan.zeropp and not plan.reshard:
        rule = "must be true with plan.zeropp, whose backward pass gathers by itself"
        yield Fault(key="plan.reshard", value=False, rule=rule, nearest=True)
    if plan.zeropp and plan.reduce_each is False:
        rule = "must be true with plan.zeropp, which holds no whole gradients"
        yield Fault(key="plan.reduce_each", value=False, rule=rule, nearest=True)
    kept = "cannot be simulated yet with pp above 1, where several micro-batches would share what is kept"
    if plan.sharding is not None:
        for held in case.holders:
            if fault := unfit_call("plan.sharding", plan.sharding, held):
                yield fault
                return
            own: object = plan.sharding(held)
            name = f"{getattr(plan.sharding, '__name__', 'own')} over {held} ranks"
            if not isinstance(own, Sharding):
                rule = "must return a clustersim.workload.sharding.Sharding"
                yield Fault(key="plan.sharding", value=f"{name}: {own!r}", rule=rule)
                return
            rules = [f"keeps: {kept}"] if own.keeps and plan.pp > 1 else []
            for rule in (*incoherent(own, ranks=held, cp=plan.cp if held == ranks else 1), *rules):
                yield Fault(key="plan.sharding", value=name, rule=rule)
    elif not plan.reshard and plan.pp > 1 and (plan.fsdp or plan.zero == 3):
        yield Fault(key="plan.reshard", value=False, rule=kept, nearest=True)


def sharding_notes(case: Case) -> Iterator[str]:
    """Words on how replicas divide weights, gradients and state, where other words leave them nothing to say."""
    plan, ranks = case.plan, max(case.holders)
    given = {name for name, default in _SHARDING.items() if getattr(plan, name) != default}
    if plan.sharding is not None:
        for name in sorted(given | ({"zero"} if plan.zero else set()) | ({"fsdp"} if plan.fsdp else set())):
            yield f"plan.{name}: no effect with plan.sharding, an own strategy"
        return
    if plan.fsdp and plan.zero:
        yield "plan.zero: no effect with plan.fsdp, which splits weights the same way"
    splits = plan.fsdp or plan.zero == 3
    for name in ("hsdp", "prefetch", "reshard", "limit_gathers", "gather_blocks", "per_parameter", "gather_dtype"):
        whole = name == "gather_dtype" and plan.zero
        if name in given and not splits and not whole:
            yield f"plan.{name}: no effect without plan.fsdp or plan.zero 3"
    if ranks == 1:
        idle = {"reduce_dtype", "reduce_each", "reduce_scatter", "zeropp", "sync_every"}
        for name in sorted(given & (idle | {"gather_dtype"} if plan.zero in (1, 2) else idle)):
            yield f"plan.{name}: no effect with dp 1"
    elif plan.reduce_each is False and not splits and plan.zero < 2:
        yield "plan.reduce_each: no effect: gradients that are held whole are reduced after the last micro-batch"
    elif plan.reduce_each and not splits and plan.zero < 2 and case.num_micro_batches == 1:
        yield "plan.reduce_each: with one micro-batch it decides on the buckets alone"
    if plan.zeropp and plan.zeropp_ranks >= ranks:
        for name in sorted(set(plan.zeropp) & {"hpz", "qgz"}):
            yield f"plan.zeropp: {name}: no effect with plan.zeropp_ranks {plan.zeropp_ranks} of {ranks} ranks"
    if plan.zeropp and "qgz" in plan.zeropp and plan.reduce_dtype is not None and plan.zeropp_ranks < ranks:
        yield "plan.reduce_dtype: no effect with qgz of plan.zeropp, which reduces in int4"
    if not plan.reduce_scatter and ranks > 1 and not (splits or plan.zero):
        yield "plan.reduce_scatter: no effect without plan.zero or plan.fsdp: gradients are summed by all-reduce anyway"
    inside = bool(plan.zeropp) or (plan.hsdp is not None and splits)
    if inside and ranks > 1 and not plan.reduce_scatter:
        yield "plan.reduce_scatter: no effect with plan.zeropp or plan.hsdp, which reduce inside of groups"
    if inside and plan.gather_blocks:
        yield "plan.gather_blocks: no effect with plan.zeropp or plan.hsdp, which gather layers"
    if plan.zeropp and plan.per_parameter:
        yield "plan.per_parameter: no effect with plan.zeropp, which is DeepSpeed's"
    if plan.zeropp_ranks != 8 and not plan.zeropp:
        yield "plan.zeropp_ranks: no effect without plan.zeropp"
    if plan.sync_every is None:
        for name in sorted(given & {"sync_ranks", "sync_dtype", "sync_momentum"}):
            yield f"plan.{name}: no effect without plan.sync_every"
    elif ranks > 1 and plan.sync_ranks >= ranks:
        yield f"plan.sync_every: no effect with plan.sync_ranks {plan.sync_ranks}: one worker has all {ranks} ranks"
    elif ranks > 1:
        yield f"plan.sync_every: one step of the result is {plan.sync_every} optimizer steps and one exchange"
    each = plan.reduce_each if plan.reduce_each is not None else plan.zero == 2
    if plan.flat_parameters and (ranks == 1 or plan.per_parameter or plan.zeropp):
        yield "plan.flat_parameters: no effect with plan.per_parameter, plan.zeropp or dp 1"
    elif plan.flat_parameters and not (splits or (plan.zero > 0 and each)):
        yield "plan.flat_parameters: no effect without plan.fsdp or plan.zero 2 or 3"
    if plan.bucket_bytes is not None and (ranks == 1 or splits or not (plan.overlap_dp or each)):
        yield "plan.bucket_bytes: no effect with dp 1, where weights are split, or in one bucket without overlap_dp"
    if not plan.overlap_refresh and (ranks == 1 or splits or plan.zero == 0 or not plan.overlap_dp):
        yield "plan.overlap_refresh: no effect without plan.zero 1 or 2 over replicas and plan.overlap_dp"
    if not plan.overlap_dp and ranks > 1 and splits:
        yield "plan.overlap_dp: no effect on weights and gradients that travel with the passes, layer by layer"
    if plan.placeholders != "none" and (splits or each) and min(case.holders) > 1:
        yield "plan.placeholders: no effect on gradients that travel with the passes, which are tensors of their own"
    if plan.sync_every is not None and plan.sync_ranks == 1 < ranks:
        said = {"zero": plan.zero > 0, "fsdp": plan.fsdp, "overlap_dp": not plan.overlap_dp}
        for name in sorted(given & {"reduce_dtype", "reduce_each"} | {name for name in said if said[name]}):
            yield f"plan.{name}: no effect with plan.sync_ranks 1: between exchanges a worker is alone"
