"""Stages, their chunks, and the order of their passes."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.precision import find_recipe
from clustersim.workload.schedule import SCHEDULES, PlacedSchedule, legal, placement_of, read_table
from clustersim.workload.sharding.strategy import strategy

__all__ = ["chunk_faults", "copy_faults", "stage_faults"]


def stage_faults(case: Case) -> Iterator[Fault]:
    plan, places = case.plan, case.model.num_layers + 2
    if case.num_virtual_stages <= places:
        return
    rule = (
        f"leaves a stage empty: pp {plan.pp} x vpp {case.num_virtual} = {case.num_virtual_stages} stages must be at "
        f"most the {case.model.num_layers} layers, embedding and head"
    )
    if plan.pp <= places:
        yield Fault(key="plan.vpp", value=plan.vpp, rule=rule, nearest=places // plan.pp)
    else:
        yield Fault(key="plan.pp", value=plan.pp, rule=rule, nearest=places // case.num_virtual or 1)


def chunk_faults(case: Case) -> Iterator[Fault]:
    plan, schedule, num_virtual = case.plan, case.schedule, case.num_virtual
    if num_virtual > 1 and plan.pp == 1:
        yield Fault(key="plan.vpp", value=num_virtual, rule="must be 1 with one stage", nearest=1)
    elif num_virtual > 1 and schedule in ("gpipe", "1f1b"):
        rule = f"must be interleaved for {num_virtual} chunks a stage"
        yield Fault(key="plan.schedule", value=schedule, rule=rule, nearest="interleaved")
    elif num_virtual == 1 and schedule == "interleaved":
        rule = "needs vpp above 1; must be 1f1b or gpipe"
        yield Fault(key="plan.schedule", value=schedule, rule=rule, nearest="1f1b")
    elif isinstance(schedule, PlacedSchedule) and schedule.num_virtual not in (None, num_virtual):
        rule = f"must be {schedule.num_virtual} for {schedule.name}"
        yield Fault(key="plan.vpp", value=num_virtual, rule=rule, nearest=schedule.num_virtual)
    elif schedule in SCHEDULES:
        yield from (f for f in legal(str(schedule), plan.pp, num_virtual, 1) if f.key.startswith("plan."))


def copy_faults(case: Case) -> Iterator[Fault]:
    """A schedule that holds each chunk on two stages makes these one group of replicas."""
    schedule = case.schedule
    if isinstance(schedule, str):
        schedule = SCHEDULES[schedule] if schedule in SCHEDULES else read_table(schedule)
    copies = len(placement_of(schedule, case.plan.pp, case.num_virtual).routes)
    if copies == 1:
        return
    ranks = copies * case.replicas * case.plan.cp
    sharding = strategy(case.plan, find_recipe(case.dtype))(ranks)
    if 1 < sharding.inner < ranks:
        rule = f"holds each chunk on two stages, which does not go with inner groups of {sharding.name}"
        yield Fault(key="plan.schedule", value=case.plan.schedule, rule=rule, nearest="1f1b")
