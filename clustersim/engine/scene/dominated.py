"""Resources that never bind because a tighter one has exactly their users and loads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.mix import mix
from clustersim.engine.system.system import System

__all__ = ["find_dominated"]


def find_dominated(system: System, live: NDArray[np.bool_], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows that never bind because another row has exactly their users and loads, and at most their capacity.

    Users and loads are compared as sums of 64-bit hashes.

    Parameters
    ----------
    live : NDArray[bool], shape (num_resources,)
        rows that could bind as far as is known
    kept : NDArray[int64]
        rows whose capacity may change
    """
    odd = np.uint64(0x9E3779B97F4A7C15)
    hashes = np.zeros(len(live), dtype=np.uint64)
    for block in system.blocks:
        used, load = np.flatnonzero(live[block.cost.row]), block.cost.by_phase.load
        code = (1 + block.first + block.cost.group[used]).astype(np.uint64)
        for p in range(load.shape[1]):
            code = mix(code * odd + load[used, p].astype(np.uint64))
        np.add.at(hashes, block.cost.row[used], code)
    for edges in system.path_edges:
        used = np.flatnonzero(live[edges.rows])
        code = mix((1 + system.num_groups + edges.ranks[used]).astype(np.uint64))
        alike = next(k for k, e in enumerate(system.path_edges) if np.array_equal(e.loads, edges.loads))
        np.add.at(hashes, edges.rows[used], mix(code * odd + np.uint64(alike)))
    rows = np.setdiff1d(np.flatnonzero(live), kept)  # a capacity that may change shields no other
    order = rows[np.lexsort((rows, system.topology.resources.capacity[rows], hashes[rows]))]
    follows = np.zeros(len(order), dtype=bool)
    follows[1:] = hashes[order[1:]] == hashes[order[:-1]]
    return order[follows]
