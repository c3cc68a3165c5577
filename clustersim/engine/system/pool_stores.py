"""Stores of pools: which ranks share one, and in which order it serves them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.topology import Topology
from clustersim.workload.job import Job

__all__ = ["PoolStores", "pool_stores"]

PoolStores = dict[tuple[int, str], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""(job, pool) -> for each rank of the job the number of its store, and its place among the ranks that share it: the key
that orders grants of one instant."""


def pool_stores(
    topology: Topology, jobs: Sequence[Job], first_rank: NDArray[np.int64], device: NDArray[np.int64]
) -> PoolStores:
    """The stores of all jobs, one for each rank, node or job as the pool's scope says."""
    stores: PoolStores = {}
    for j, job in enumerate(jobs):
        mine = device[first_rank[j] : first_rank[j + 1]]
        for name, pool in job.pools.items():
            by_scope = {
                "rank": np.arange(len(mine)),
                "node": topology.node_of[mine],
                "job": np.zeros(len(mine), np.int64),
            }
            of = np.unique(by_scope[pool.scope], return_inverse=True)[1].reshape(-1).astype(np.int64)
            stores[j, name] = of, _place_within(of)
    return stores


def _place_within(store: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position of each rank among those that share its store, by rank number."""
    order = np.argsort(store, kind="stable")
    ordered = store[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    place = np.empty(len(store), dtype=np.int64)
    place[order] = np.arange(len(store)) - np.repeat(starts, np.diff(np.append(starts, len(store))))
    return place
