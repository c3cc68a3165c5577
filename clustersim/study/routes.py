"""Routes between members of process groups, to say whether two clusters are the same to a job."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.topology import Topology
from clustersim.workload.job import Job

__all__ = ["MOST_PAIRS", "pairs_apart", "same_ways"]

MOST_PAIRS = 200_000
"""Pairs of ranks whose routes are compared; a job with more is not judged by its routes."""


def pairs_apart(topology: Topology, job: Job, *, by_node: bool = True) -> NDArray[np.int64] | None:
    """Devices that are in one group, on different nodes unless ``by_node`` is false, shape (n, 2).

    None when they are too many to look at.
    """
    place = topology.node_of if by_node else np.arange(topology.num_devices)
    devices = np.arange(job.num_ranks) if job.devices is None else job.devices
    found = []
    for family in job.families:
        members = devices[family.members]
        of = place[members]
        spanning = members[(of != of[:, :1]).any(axis=1)]
        width = members.shape[1]
        if len(spanning) * width**2 > MOST_PAIRS:
            return None
        pairs = np.stack([np.repeat(spanning, width, axis=1), np.tile(spanning, (1, width))], axis=2).reshape(-1, 2)
        found.append(pairs[place[pairs[:, 0]] != place[pairs[:, 1]]])
    return np.unique(np.concatenate(found), axis=0) if found else np.empty((0, 2), np.int64)


def same_ways(one: Topology, other: Topology, pairs: NDArray[np.int64]) -> bool:
    """Whether the routes of all pairs share links of the same capacities and latencies in the same way on both."""
    return all(np.array_equal(mine, its) for mine, its in zip(_ways(one, pairs), _ways(other, pairs), strict=True))


def _ways(topology: Topology, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Routes with resources numbered as they first appear, and their capacities and latencies."""
    rows = topology.route(pairs[:, 0], pairs[:, 1])
    used = rows >= 0
    _, first, number = np.unique(rows[used], return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    resources = topology.resources
    return used.sum(axis=1), order[number.ravel()], resources.capacity[rows[used]], resources.latency_ns[rows[used]]
