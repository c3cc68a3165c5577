"""How layers are spread over stages."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.schedule import SCHEDULES, placement_of
from clustersim.workload.stages import split

__all__ = ["STAGE_LAYERS_KEYS", "stage_layers_faults", "stage_layers_notes", "stage_layers_values"]

STAGE_LAYERS_KEYS = ("plan.pp", "plan.vpp", "plan.schedule", "plan.stage_layers", "model")
"""Settings that must be legal by themselves before the list of layers is held against them."""


def stage_layers_values(case: Case) -> Iterator[Fault]:
    """Each setting by itself."""
    given, words = case.plan.stage_layers, ("layers", "flops")
    if case.plan.split not in words:
        rule = f"must be one of {', '.join(words)}"
        yield Fault(key="plan.split", value=case.plan.split, rule=rule, nearest=words[0])
    if given is None:
        return
    whole = isinstance(given, list | tuple) and all(type(n) is int and n >= 0 for n in given)
    if not whole or not given:
        yield Fault(key="plan.stage_layers", value=given, rule="must be a list of whole numbers from 0")


def stage_layers_faults(case: Case) -> Iterator[Fault]:
    """One number for each virtual stage; none but the first and the last without layers; all layers once."""
    given, schedule = case.plan.stage_layers, case.schedule
    if given is None:
        return
    places = case.num_virtual_stages
    if not isinstance(schedule, str) or schedule in SCHEDULES:
        known = SCHEDULES[schedule] if isinstance(schedule, str) else schedule
        places = len(placement_of(known, case.plan.pp, case.num_virtual).routes[0])
    layers = case.model.num_layers
    even = [chunk.num_layers for chunk in split(layers, places)] if places <= layers + 2 else None
    if len(given) != places:
        rule = f"has {len(given)} numbers, must have one for each of {places} virtual stages"
        yield Fault(key="plan.stage_layers", value=given, rule=rule, nearest=even)
    elif sum(given) != layers:
        rule = f"adds up to {sum(given)}, must add up to the {layers} layers of {case.model.name}"
        yield Fault(key="plan.stage_layers", value=given, rule=rule, nearest=even)
    elif 0 in given[1:-1]:
        rule = "must be positive but for the first and the last stage, which have embedding and head"
        yield Fault(key="plan.stage_layers", value=given, rule=rule, nearest=even)


def stage_layers_notes(case: Case) -> Iterator[str]:
    """Settings without effect."""
    plan = case.plan
    if plan.split != "layers" and plan.stage_layers is not None:
        yield "plan.split: no effect: plan.stage_layers says how many layers each stage has"
    elif plan.split != "layers" and case.num_virtual_stages == 1:
        yield "plan.split: no effect with one stage"
    if plan.stage_layers is not None and case.num_virtual_stages == 1:
        yield "plan.stage_layers: no effect with one stage"
