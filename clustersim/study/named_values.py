"""Values of settings in full: callables of one's own and policies in the place of their names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from clustersim.faults import Fault, collect
from clustersim.library.section import find_builder
from clustersim.study.policies import checkpoint_strategy, offload_policy, take_table
from clustersim.topology.topology import Topology
from clustersim.workload.schedule import SCHEDULES

__all__ = ["named_values"]

_CALLABLES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "plan.schedule": SCHEDULES,
    "plan.sharding": {},
    "graph.placement": {},
}
"""Settings that may name a callable of the user's own, each with the short names."""


def named_values(
    values: Mapping[str, Any], refused: Collection[str], topology: Topology | None
) -> tuple[dict[str, Any], list[Fault]]:
    """Find what values name.

    Parameters
    ----------
    values : Mapping[str, Any]
        by dotted name, None where open
    refused : Collection[str]
        settings that are not legal by themselves; callables of these are not looked for
    topology : Topology, optional
        whose drives offload policies are told of

    Returns
    -------
    dict[str, Any], list[Fault]
        ``values`` with callables for their names (None for those that were not found), and ``plan.offload`` and
        ``plan.checkpoint`` for the tables of these names (left out where they could not be made); and what could not be
        found or made
    """
    found: list[Fault] = []
    full = dict(values)
    for key, known in _CALLABLES.items():
        name = full[key]
        if isinstance(name, str) and ":" in name:
            full[key] = None
            if key in refused:
                continue
            with collect(found):
                full[key] = find_builder(key, name, known)
    settings_of_offload = take_table(full, "plan.offload")
    with collect(found):
        full["plan.offload"] = offload_policy(settings_of_offload, topology)
    settings_of_saves = take_table(full, "plan.checkpoint")
    with collect(found):
        full["plan.checkpoint"] = checkpoint_strategy(settings_of_saves)
    return full, found
