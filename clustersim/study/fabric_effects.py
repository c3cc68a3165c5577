"""Settings of what joins nodes, and of links, that changed nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput
from clustersim.library.keys import KEYS
from clustersim.library.topologies import load_topology
from clustersim.study.given_setting import GivenSetting
from clustersim.topology.topology import Topology
from clustersim.workload.job import Job

__all__ = ["MOST_PAIRS", "apart", "failed", "links", "same_routes", "sums_in_switches"]

MOST_PAIRS = 200_000
"""Pairs of ranks whose routes are compared; a job with more is not judged by its routes."""


def same_routes(case: GivenSetting) -> str | None:
    """What joins nodes does nothing when no group needs it, or when the routes are those of the cluster without it."""
    if case.topology.num_nodes == 1:
        return "one node has nothing to join"
    pairs = _pairs_apart(case.topology, case.job)
    if pairs is None:
        return None
    if not len(pairs):
        return "no process group spans two nodes"
    keys = ("nodes", "nics_per_node", *(key for key in KEYS if key.startswith("fabric")))
    others = {key: case.setup.values[key] for key in keys if key in case.setup.values and key != case.key}
    try:
        plain = load_topology(case.setup.value("topology"), **others)
    except BadInput:  # the others need it
        return None
    ways = _ways(case.topology, pairs), _ways(plain, pairs)
    same = all(np.array_equal(mine, its) for mine, its in zip(*ways, strict=True))
    return "the routes of every process group are the same without it" if same else None


def apart(case: GivenSetting) -> str | None:
    """What NCCL costs between nodes does nothing when no group needs them."""
    pairs = _pairs_apart(case.topology, case.job)
    return None if pairs is None or len(pairs) else "no process group spans two nodes"


def sums_in_switches(case: GivenSetting) -> str | None:
    """Switches that add up do nothing when no collective runs through them."""
    summed = case.result.collectives["algorithm"].isin(("sharp", "collnet_chain"))
    return None if summed.any() else "no collective was fastest with the sums of the network's switches"


def links(case: GivenSetting) -> str | None:
    """A link that differs from its like is a class of its own, so it is seen under its own name when it is used."""
    names = set(case.value)
    if isinstance(case.value, dict) and all(factor == 1 for factor in case.value.values()):
        return "every factor is 1"
    used = {rates.name for rates in case.result.usage}
    return None if names & used else f"nothing crosses {', '.join(sorted(names))}"


def failed(case: GivenSetting) -> str | None:
    """As a slow link; what has failed whole is crossed by nobody, so the routes that led over it tell."""
    reason = links(case)
    left = case.topology.without_links(case.value)
    if reason is None or left.router is case.topology.router:
        return reason
    pairs = _pairs_apart(case.topology, case.job)
    if pairs is None:
        return None
    ways = zip(_ways(case.topology, pairs), _ways(left, pairs), strict=True)
    return reason if all(np.array_equal(before, after) for before, after in ways) else None


def _pairs_apart(topology: Topology, job: Job) -> NDArray[np.int64] | None:
    """Devices on different nodes that are in one group, shape (n, 2); None when they are too many to look at."""
    devices = np.arange(job.num_ranks) if job.devices is None else job.devices
    found = []
    for family in job.families:
        members = devices[family.members]
        nodes = topology.node_of[members]
        spanning = members[(nodes != nodes[:, :1]).any(axis=1)]
        width = members.shape[1]
        if len(spanning) * width**2 > MOST_PAIRS:
            return None
        pairs = np.stack([np.repeat(spanning, width, axis=1), np.tile(spanning, (1, width))], axis=2).reshape(-1, 2)
        found.append(pairs[topology.node_of[pairs[:, 0]] != topology.node_of[pairs[:, 1]]])
    return np.unique(np.concatenate(found), axis=0) if found else np.empty((0, 2), np.int64)


def _ways(topology: Topology, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Routes with resources numbered as they first appear, and their capacities and latencies."""
    rows = topology.route(pairs[:, 0], pairs[:, 1])
    used = rows >= 0
    _, first, number = np.unique(rows[used], return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    resources = topology.resources
    return used.sum(axis=1), order[number.ravel()], resources.capacity[rows[used]], resources.latency_ns[rows[used]]
