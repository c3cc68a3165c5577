"""Policies of offloading and of saving that a job names, with their settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clustersim.faults import BadInput, Fault
from clustersim.library.section import find_builder
from clustersim.topology.drive_rates import drive_rates
from clustersim.topology.topology import Topology
from clustersim.workload.checkpoint import STRATEGIES, Checkpoint
from clustersim.workload.offload import POLICIES, OffloadPolicy, make_policy
from clustersim.workload.policy_settings import with_settings

__all__ = ["checkpoint_strategy", "offload_policy", "take_table"]


def take_table(values: dict[str, Any], table: str) -> dict[str, Any]:
    """Take the settings of a table inside of another out of ``values``: those that have a value, by their names."""
    keys = [key for key in values if key.startswith(f"{table}.")]
    taken = {key.removeprefix(f"{table}."): values.pop(key) for key in keys}
    return {name: value for name, value in taken.items() if value is not None}


def offload_policy(settings: Mapping[str, Any], topology: Topology | None) -> OffloadPolicy | None:
    """The policy that a job asks for, as its cluster's drives let it work; None where it does not."""
    if not settings:
        return None
    kind, given = _named("plan.offload", settings, POLICIES)
    policy = make_policy(kind, given)
    return policy if topology is None else policy.on_drives(drive_rates(topology))


def checkpoint_strategy(settings: Mapping[str, Any]) -> Checkpoint | None:
    """How a job asks for its state to be saved; None where it does not."""
    if not settings:
        return None
    kind, given = _named("plan.checkpoint", settings, STRATEGIES)
    made: Checkpoint = with_settings(kind, given, table="plan.checkpoint")
    return made


def _named(table: str, settings: Mapping[str, Any], known: Mapping[str, type]) -> tuple[Any, dict[str, Any]]:
    """The class that ``policy`` of a table names, and the other settings."""
    given = dict(settings)
    name = given.pop("policy", None)
    if name is None:
        rule = f"must be given with other settings of {table}"
        raise BadInput([Fault(key=f"{table}.policy", value=None, rule=rule, nearest=next(iter(known)))])
    return find_builder(f"{table}.policy", name, known), given
