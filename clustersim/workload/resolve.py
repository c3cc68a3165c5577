"""A plan, a model and a batch against each other: every fault at once, or the plan with nothing left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clustersim.faults import BadInput, Fault, unfit_call
from clustersim.workload.case import Case
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.rules import find_faults
from clustersim.workload.rules.architecture import architecture_notes
from clustersim.workload.rules.context import context_notes
from clustersim.workload.rules.documents import document_notes
from clustersim.workload.rules.experts import expert_notes
from clustersim.workload.rules.frameworks import framework_notes
from clustersim.workload.rules.fusion import fusion_notes
from clustersim.workload.rules.host import host_notes
from clustersim.workload.rules.layout import layout_notes
from clustersim.workload.rules.precision import module_dtype_notes
from clustersim.workload.rules.sharding import sharding_notes
from clustersim.workload.rules.stage_layers import stage_layers_notes
from clustersim.workload.rules.tensor_overlap import tensor_overlap_notes
from clustersim.workload.schedule import (
    SCHEDULES,
    Overlapped,
    Placement,
    Schedule,
    Table,
    Unit,
    check,
    placement_of,
    read_table,
)
from clustersim.workload.shard import padded_vocab
from clustersim.workload.stage_split import stage_split
from clustersim.workload.stages import describe

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

    @property
    def placement(self) -> Placement:
        """Where the schedule puts the chunks of the model."""
        return placement_of(self.schedule, self.plan.pp, self.plan.vpp or 1)

    def table(self) -> Table:
        """The schedule's table, proven to end.

        Raises
        ------
        BadInput
            with every fault of a table that is no schedule of this plan
        """
        num_virtual = self.plan.vpp or 1
        asked = (self.plan.pp, num_virtual, self.num_micro_batches)
        if fault := unfit_call("plan.schedule", self.schedule, *asked):
            raise BadInput([fault])
        table = self.schedule(*asked)
        if not _is_table(table):
            rule = "must return for each stage a sequence of Unit and Overlapped"
            raise BadInput([Fault(key="plan.schedule", value=repr(table)[:60], rule=rule)])
        faults = check(
            table,
            num_stages=self.plan.pp,
            num_virtual=num_virtual,
            num_micro_batches=self.num_micro_batches,
            placement=self.placement,
        )
        if faults:
            raise BadInput(faults)
        return table


def _is_table(table: object) -> bool:
    """Whether a schedule of a user's own returned what schedules return."""
    if not isinstance(table, Sequence) or isinstance(table, str):
        return False
    return all(
        isinstance(row, Sequence) and all(isinstance(entry, Unit | Overlapped) for entry in row) for row in table
    )


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
        gradient_dtype=case.gradient_dtype,
        schedule=case.schedule,
        sequence_parallel=case.sequence_parallel,
        axis_order=tuple(case.plan.axis_order),
        offload=case.offload,
    )
    schedule = case.schedule
    if isinstance(schedule, str):
        schedule = SCHEDULES[schedule] if schedule in SCHEDULES else read_table(schedule)
    num_places = len(placement_of(schedule, plan.pp, case.num_virtual).routes[0])
    notes = (
        *_shapes(case, num_places),
        *_without_effect(case),
        *expert_notes(case),
        *architecture_notes(case),
        *stage_layers_notes(case),
        *framework_notes(case),
    )
    return Resolved(plan=plan, schedule=schedule, num_micro_batches=case.num_micro_batches, notes=notes)


def _shapes(case: Case, num_places: int) -> Iterator[str]:
    """What was split or padded; the model's layers stand on ``num_places`` of each route."""
    model, plan = case.model, case.plan
    parts = stage_split(plan, model, num_places, case.seq_len)
    if plan.split == "flops" and plan.stage_layers is None and num_places > 1:
        yield f"layers split by their FLOP: {describe(parts)}"
    elif plan.stage_layers is None and (model.num_layers % num_places or (model.mtp and num_places > 1)):
        chunks = describe(parts)
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
    if plan.tp > model.num_kv_heads > 0:
        yield (
            f"tp {plan.tp} is more than the {model.num_kv_heads} key and value heads: each is held by "
            f"{plan.tp // model.num_kv_heads} ranks; the sum of their gradients is left out"
        )
    if case.seq_len > model.max_seq_len:
        yield f"seq_len {case.seq_len} is longer than the {model.max_seq_len} tokens of the model's card"


def _without_effect(case: Case) -> Iterator[str]:
    plan = case.plan
    if plan.sequence_parallel and plan.tp == 1:
        yield "plan.sequence_parallel: no effect with tp 1"
    if not plan.overlap_tp and plan.tp == 1:
        yield "plan.overlap_tp: no effect with tp 1"
    if plan.scatter_gather and (plan.tp == 1 or plan.pp == 1 or case.sequence_parallel):
        why = f"tp {plan.tp}" if plan.tp == 1 else "pp 1" if plan.pp == 1 else "plan.sequence_parallel: they are parts"
        yield f"plan.scatter_gather: no effect with {why}"
    if plan.zero and max(case.holders) == 1:
        yield "plan.zero: no effect with dp 1"
    if plan.fsdp and max(case.holders) == 1:
        yield "plan.fsdp: no effect with dp 1"
    yield from context_notes(case)
    yield from document_notes(case)
    yield from tensor_overlap_notes(case)
    yield from sharding_notes(case)
    yield from host_notes(case)
    yield from fusion_notes(case)
    yield from module_dtype_notes(case)
    yield from layout_notes(case)
    if plan.recompute_modules != ("core",) and plan.recompute != "selective":
        yield "plan.recompute_modules: no effect without plan.recompute selective"
    if (plan.recompute_method, plan.recompute_layers) != ("uniform", None) and plan.recompute != "full":
        yield "plan.recompute_method, plan.recompute_layers: no effect without plan.recompute full"
    if plan.recompute_early_stop and plan.recompute != "full":
        yield "plan.recompute_early_stop: no effect without plan.recompute full"
    if plan.recompute == "selective" and plan.recompute_modules == ("core",) and plan.attention != "unfused":
        yield "plan.recompute: selective runs the flash attention kernel again, and frees only its row statistics"
