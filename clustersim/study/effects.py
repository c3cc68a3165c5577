"""Settings that changed nothing, told by cheap rules: one a row, each held to a run with and without the setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from clustersim.library.job import JobSetup
from clustersim.library.keys import KEYS
from clustersim.trace.result import Result
from clustersim.workload.job import Job

__all__ = ["without_effect"]


def without_effect(setup: JobSetup, job: Job, result: Result) -> Iterator[str]:
    """A sentence for each setting that was given, is not the default, and changed no op of the run.

    Parameters
    ----------
    setup : JobSetup
    job : Job
        what it became
    result : Result
        of the run

    Notes
    -----
    Rules know what a setting is read for, not whether what was read did bind: a wider link that nothing waited for is
    not told. What the plan and the fabric say of their own settings is among the job's and the topology's notes.
    """
    for key, value in setup.values.items():
        if key in _RULES and value != KEYS[key].default:
            reason = _RULES[key](value, job, result)
            if reason:
                yield f"{key}: no effect: {reason}"


def _nothing_random(value: Any, job: Job, result: Result) -> str | None:
    return "nothing in this run is drawn at random"


def _between_nodes(value: Any, job: Job, result: Result) -> str | None:
    """What joins nodes is not used when no process group has members on two of them."""
    if result.topology.num_nodes == 1:
        return "one node has nothing to join"
    node_of = result.topology.node_of if job.devices is None else result.topology.node_of[job.devices]
    for family in job.families:
        nodes = node_of[family.members]
        if bool(np.any(nodes != nodes[:, :1])):
            return None
    return "no process group spans two nodes"


def _several_replicas(value: Any, job: Job, result: Result) -> str | None:
    return "dp is 1: there is nothing to reduce" if job.plan["dp"] == 1 else None


def _several_axes(value: Any, job: Job, result: Result) -> str | None:
    degrees = [job.plan[axis] for axis in ("tp", "cp", "dp", "pp")]
    return "only one axis has more than one rank" if sum(degree > 1 for degree in degrees) < 2 else None


def _slow_ranks(value: Any, job: Job, result: Result) -> str | None:
    return "every factor is 1" if all(factor == 1 for factor in value.values()) else None


def _links(value: Any, job: Job, result: Result) -> str | None:
    """A link that differs from its like is a class of its own, so it is seen under its own name when it is used."""
    names = set(value)
    if isinstance(value, dict) and all(factor == 1 for factor in value.values()):
        return "every factor is 1"
    used = {rates.name for rates in result.usage}
    return None if names & used else f"nothing crosses {', '.join(sorted(names))}"


_RULES: dict[str, Callable[[Any, Job, Result], str | None]] = {
    "seed": _nothing_random,
    "fabric": _between_nodes,
    "fabric.oversubscription": _between_nodes,
    "fabric.levels": _between_nodes,
    "fabric.radix": _between_nodes,
    "fabric.ecmp": _between_nodes,
    "nics_per_node": _between_nodes,
    "plan.overlap_dp": _several_replicas,
    "plan.axis_order": _several_axes,
    "perturb.slow_ranks": _slow_ranks,
    "perturb.slow_links": _links,
    "perturb.failed_links": _links,
}
