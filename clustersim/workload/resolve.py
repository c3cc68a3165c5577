"""A plan, a model and a batch against each other: every fault at once, or the plan with nothing left open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from clustersim.faults import BadInput
from clustersim.workload.case import Case
from clustersim.workload.expert_rules import expert_notes
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.rules import find_faults
from clustersim.workload.schedule import SCHEDULES, Schedule, placement_of, read_table
from clustersim.workload.shard import padded_vocab
from clustersim.workload.stages import describe, split

__all__ = ["Resolved", "resolve"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """A legal plan with nothing left open.

    Parameters
    ----------
    plan : ParallelPlan
        ``dp``, ``schedule`` and ``sequence_parallel`` filled in
    schedule : Schedule
        what ``plan.schedule`` names
    num_micro_batches : int
        of one replica and step
    notes : tuple[str, ...]
        what was split, padded or repeated, and settings without effect
    """

    plan: ParallelPlan
    schedule: Schedule
    num_micro_batches: int
    notes: tuple[str, ...]


def resolve(case: Case) -> Resolved:
    """Check a case and fill in what its plan leaves open.

    Raises
    ------
    BadInput
        with every fault that can be told; a rule over several values waits until each is legal by itself
    """
    faults = find_faults(case)
    if faults:
        raise BadInput(faults)
    plan = replace(
        case.plan,
        dp=case.replicas,
        vpp=case.num_virtual,
        schedule=case.schedule,
        sequence_parallel=case.sequence_parallel,
        axis_order=tuple(case.plan.axis_order),
    )
    schedule = case.schedule
    if isinstance(schedule, str):
        schedule = SCHEDULES[schedule] if schedule in SCHEDULES else read_table(schedule)
    num_places = len(placement_of(schedule, plan.pp, case.num_virtual).routes[0])
    notes = (*_shapes(case, num_places), *_without_effect(case), *expert_notes(case))
    return Resolved(plan=plan, schedule=schedule, num_micro_batches=case.num_micro_batches, notes=notes)


def _shapes(case: Case, num_places: int) -> Iterator[str]:
    """What was split or padded; the model's layers stand on ``num_places`` of each route."""
    model, plan = case.model, case.plan
    if model.num_layers % num_places or (model.mtp and num_places > 1):
        chunks = describe(split(model.num_layers, num_places, num_mtp=model.mtp))
        virtual = num_places > plan.pp
        chunk = f"virtual stages (pp {plan.pp} x vpp {case.num_virtual})" if virtual else "stages"
        count = "embedding, head and each module of mtp" if model.mtp else "embedding and head"
        yield (
            f"{model.num_layers} layers do not divide over {num_places} {chunk}: split {chunks}, "
            f"{count} counting one layer each"
        )
    vocab = padded_vocab(model.vocab, plan.tp)
    if vocab != model.vocab:
        yield f"vocab {model.vocab} padded to {vocab}, a multiple of 128 x tp {plan.tp}"
    if plan.tp > model.num_kv_heads:
        yield (
            f"tp {plan.tp} is more than the {model.num_kv_heads} key and value heads: each is held by "
            f"{plan.tp // model.num_kv_heads} ranks; the sum of their gradients is left out"
        )
    if model.parallel_residual:
        yield "parallel residual: attention and MLP are done one after the other, each with its own reduction over tp"
    if case.seq_len > model.max_seq_len:
        yield f"seq_len {case.seq_len} is longer than the {model.max_seq_len} tokens of the model's card"


def _without_effect(case: Case) -> Iterator[str]:
    plan = case.plan
    if plan.sequence_parallel and plan.tp == 1:
        yield "plan.sequence_parallel: no effect with tp 1"
    if not plan.overlap_tp and plan.tp == 1:
        yield "plan.overlap_tp: no effect with tp 1"
    if plan.zero and case.replicas * plan.cp == 1:
        yield "plan.zero: no effect with dp 1"
    if plan.fsdp and case.replicas * plan.cp == 1:
        yield "plan.fsdp: no effect with dp 1"
    yield from _sharding_without_effect(case)
    if plan.recompute_modules != ("core",) and plan.recompute != "selective":
        yield "plan.recompute_modules: no effect without plan.recompute selective"
    if (plan.recompute_method, plan.recompute_layers) != ("uniform", None) and plan.recompute != "full":
        yield "plan.recompute_method, plan.recompute_layers: no effect without plan.recompute full"
    if plan.recompute == "selective" and plan.recompute_modules == ("core",) and plan.attention == "flash":
        yield "plan.recompute: selective runs the flash attention kernel again, and frees only its row statistics"


def _sharding_without_effect(case: Case) -> Iterator[str]:
    """Words on how replicas divide weights, gradients and state, where other words leave them nothing to say."""
    plan, ranks = case.plan, case.replicas * case.plan.cp
    given = {name for name, default in _SHARDING.items() if getattr(plan, name) != default}
    if plan.sharding is not None:
        for name in sorted(given | ({"zero"} if plan.zero else set()) | ({"fsdp"} if plan.fsdp else set())):
            yield f"plan.{name}: no effect with plan.sharding, an own strategy"
        return
    if plan.fsdp and plan.zero:
        yield "plan.zero: no effect with plan.fsdp, which splits weights the same way"
    splits = plan.fsdp or plan.zero == 3
    for name in ("hsdp", "prefetch", "reshard", "limit_gathers", "gather_dtype"):
        whole = name == "gather_dtype" and plan.zero
        if name in given and not splits and not whole:
            yield f"plan.{name}: no effect without plan.fsdp or plan.zero 3"
    if ranks == 1:
        for name in sorted(given & {"reduce_dtype", "reduce_each", "zeropp", "sync_every"}):
            yield f"plan.{name}: no effect with dp 1"
    elif plan.reduce_each is not None and not splits and case.num_micro_batches == 1:
        yield "plan.reduce_each: no effect with one micro-batch"
    elif plan.reduce_each is False and not splits and plan.zero < 2:
        yield "plan.reduce_each: no effect: gradients that are held whole are reduced after the last micro-batch"
    if plan.zeropp and plan.zeropp_ranks >= ranks:
        for name in sorted(set(plan.zeropp) & {"hpz", "qgz"}):
            yield f"plan.zeropp: {name}: no effect with plan.zeropp_ranks {plan.zeropp_ranks} of {ranks} ranks"
    if plan.zeropp and "qgz" in plan.zeropp and plan.reduce_dtype is not None and plan.zeropp_ranks < ranks:
        yield "plan.reduce_dtype: no effect with qgz of plan.zeropp, which reduces in int4"
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
    if plan.bucket_bytes is not None and (ranks == 1 or splits or not (plan.overlap_dp or each)):
        yield "plan.bucket_bytes: no effect with dp 1, where weights are split, or in one bucket without overlap_dp"
    if not plan.overlap_dp and ranks > 1 and (splits or each):
        yield "plan.overlap_dp: no effect on what travels with the passes, layer by layer or bucket by bucket"


_SHARDING: Mapping[str, object] = {
    "hsdp": None,
    "prefetch": 1,
    "reshard": True,
    "limit_gathers": True,
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
