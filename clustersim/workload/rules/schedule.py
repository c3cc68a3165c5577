"""Stages, their chunks, and the order of their passes."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import BadInput, Fault
from clustersim.workload.case import Case
from clustersim.workload.precision import find_recipe
from clustersim.workload.schedule import (
    SCHEDULES,
    PlacedSchedule,
    Schedule,
    is_path,
    legal,
    placement_of,
    read_table,
)
from clustersim.workload.schedule.limits import LIMITS, Limits
from clustersim.workload.sharding.strategy import strategy

__all__ = ["chunk_faults", "copy_faults", "stage_faults", "table_faults"]


def stage_faults(case: Case) -> Iterator[Fault]:
    """No stage is left without a layer, an embedding or a head; each route of a schedule holds the whole model."""
    plan, places, schedule = case.plan, case.model.num_layers + 2, _schedule(case)
    limits = _limits(case, schedule)
    least, most = limits.num_virtual
    ways = 1
    if isinstance(schedule, PlacedSchedule):
        ways = len(schedule.placement(plan.pp, schedule.num_virtual or case.num_virtual).routes)
    stages = plan.pp * case.num_virtual // ways
    if stages <= places:
        return
    by = f"vpp {case.num_virtual}" + (f" / {ways} ways" if ways > 1 else "")
    rule = (
        f"leaves a stage empty: pp {plan.pp} x {by} = {stages} stages must be at "
        f"most the {case.model.num_layers} layers, embedding and head"
    )
    if case.num_virtual > least and plan.pp * least <= places * ways:
        nearest = 1 if plan.pp == 1 else min(places * ways // plan.pp, most or places)
        yield Fault(key="plan.vpp", value=plan.vpp, rule=rule, nearest=nearest)
    else:
        multiple = limits.stages_multiple
        nearest = places * ways // case.num_virtual // multiple * multiple or multiple
        yield Fault(key="plan.pp", value=plan.pp, rule=rule, nearest=nearest)


def chunk_faults(case: Case) -> Iterator[Fault]:
    """Chunks a stage and the schedule ask for each other."""
    plan, schedule, num_virtual = case.plan, _schedule(case), case.num_virtual
    least, _ = _limits(case, schedule).num_virtual
    if plan.pp == 1 and least > 1 and plan.schedule is not None:
        rule = f"needs {least} chunks a stage, and so pp above 1; must be 1f1b or gpipe with one stage"
        yield Fault(key="plan.schedule", value=plan.schedule, rule=rule, nearest="1f1b")
        if plan.vpp is None or plan.vpp == 1:
            return
    if num_virtual > 1 and plan.pp == 1:
        yield Fault(key="plan.vpp", value=num_virtual, rule="must be 1 with one stage", nearest=1)
    elif num_virtual > 1 and case.schedule in ("gpipe", "1f1b"):
        rule = f"must be interleaved for {num_virtual} chunks a stage"
        yield Fault(key="plan.schedule", value=case.schedule, rule=rule, nearest="interleaved")
    elif num_virtual == 1 and case.schedule == "interleaved":
        rule = "needs vpp above 1; must be 1f1b or gpipe"
        yield Fault(key="plan.schedule", value=case.schedule, rule=rule, nearest="1f1b")
    elif case.schedule in SCHEDULES:
        yield from (f for f in legal(str(case.schedule), plan.pp, num_virtual, 1) if f.key.startswith("plan."))
    elif isinstance(schedule, PlacedSchedule) and schedule.num_virtual not in (None, num_virtual):
        rule = f"must be {schedule.num_virtual} for {schedule.name}"
        yield Fault(key="plan.vpp", value=num_virtual, rule=rule, nearest=schedule.num_virtual)


def copy_faults(case: Case) -> Iterator[Fault]:
    """A schedule that holds each chunk on two stages makes these one group of replicas."""
    copies = len(placement_of(_schedule(case), case.plan.pp, case.num_virtual).routes)
    if copies == 1:
        return
    ranks = copies * case.replicas * case.plan.cp
    sharding = strategy(case.plan, find_recipe(case.dtype))(ranks)
    if 1 < sharding.inner < ranks:
        rule = f"holds each chunk on two stages, which does not go with inner groups of {sharding.name}"
        yield Fault(key="plan.schedule", value=case.plan.schedule, rule=rule, nearest="1f1b")


def table_faults(case: Case) -> Iterator[Fault]:
    """A schedule that is the path of a table can be read."""
    if is_path(case.plan.schedule):
        try:
            read_table(str(case.plan.schedule))
        except BadInput as error:
            yield from error.faults


def _schedule(case: Case) -> Schedule:
    """What the name or the path stands for."""
    schedule = case.schedule
    if isinstance(schedule, str):
        return SCHEDULES[schedule] if schedule in SCHEDULES else read_table(schedule)
    return schedule


def _limits(case: Case, schedule: Schedule) -> Limits:
    """What the schedule asks for."""
    if isinstance(case.schedule, str) and case.schedule in LIMITS:
        return LIMITS[case.schedule]
    chunks = schedule.num_virtual if isinstance(schedule, PlacedSchedule) else None
    return Limits(num_virtual=(chunks or 1, chunks))
