"""A plan, a model and a batch against each other: every fault at once, or the plan with nothing left open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from clustersim.faults import BadInput
from clustersim.workload.case import Case
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.rules import find_faults
from clustersim.workload.schedule import SCHEDULES, Schedule, read_table
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
    notes = (*_shapes(case), *_without_effect(case))
    schedule = case.schedule
    if isinstance(schedule, str):
        schedule = SCHEDULES[schedule] if schedule in SCHEDULES else read_table(schedule)
    return Resolved(plan=plan, schedule=schedule, num_micro_batches=case.num_micro_batches, notes=notes)


def _shapes(case: Case) -> Iterator[str]:
    model, plan = case.model, case.plan
    if model.num_layers % case.num_virtual_stages:
        chunks = describe(split(model.num_layers, case.num_virtual_stages))
        chunk = "stages" if case.num_virtual == 1 else f"virtual stages (pp {plan.pp} x vpp {case.num_virtual})"
        yield (
            f"{model.num_layers} layers do not divide over {case.num_virtual_stages} {chunk}: split {chunks}, "
            "embedding and head counting one layer each"
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
    if plan.fsdp and plan.zero == 3:
        yield "plan.zero: no effect with plan.fsdp, which splits weights the same way"
    splits = plan.fsdp or plan.zero == 3
    defaults = {"hsdp": None, "prefetch": 1, "reshard": True}
    for name, default in defaults.items():
        if getattr(plan, name) != default and not splits:
            yield f"plan.{name}: no effect without plan.fsdp or plan.zero 3"
    if not plan.reduce_each and not splits and plan.zero != 2:
        yield "plan.reduce_each: no effect without plan.fsdp or plan.zero 2 or 3"
    if plan.recompute_modules != ("core",) and plan.recompute != "selective":
        yield "plan.recompute_modules: no effect without plan.recompute selective"
    if (plan.recompute_method, plan.recompute_layers) != ("uniform", None) and plan.recompute != "full":
        yield "plan.recompute_method, plan.recompute_layers: no effect without plan.recompute full"
    if plan.bucket_bytes is not None and (case.replicas == 1 or not plan.overlap_dp):
        yield "plan.bucket_bytes: no effect with dp 1 or without overlap_dp"
    if plan.recompute == "selective" and plan.recompute_modules == ("core",) and plan.attention == "flash":
        yield "plan.recompute: selective runs the flash attention kernel again, and frees only its row statistics"
