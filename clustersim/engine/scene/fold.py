"""The folded scene: one lane for each class of ranks that nothing can tell apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.scene.classes import find_classes, own_memory
from clustersim.engine.scene.folded_lanes import folded_lanes
from clustersim.engine.scene.folded_rendezvous import folded_rendezvous
from clustersim.engine.scene.live import Live
from clustersim.engine.scene.scene import Scene
from clustersim.engine.system.system import System

__all__ = ["folded_scene"]


def folded_scene(system: System, live: Live, launch_of: NDArray[np.int64], declared: Sequence[int] = ()) -> Scene:
    """Play one rank of each class.

    Parameters
    ----------
    live : Live
        what can bind
    launch_of : NDArray[int64], shape (num_ranks,)
        number of the launch that each rank belongs to: ranks launched apart are told apart
    declared : Sequence[int]
        resources whose capacity may change: each is told apart from all others, condition (g)
    """
    classes = find_classes(system, live.rows, launch_of, declared)
    _, rank_of, size = np.unique(classes.rank, return_index=True, return_counts=True)
    live_rows = np.flatnonzero(live.rows)
    row_classes, at = np.unique(classes.row, return_index=True)
    rows = live_rows[at]
    resource_of = np.full(len(live.rows), -1, dtype=np.int64)
    resource_of[rows] = np.arange(len(row_classes))  # -1 for all but the representatives
    own = own_memory(system, live.rows)[rank_of]
    own_resource = np.full(len(own), -1, dtype=np.int64)
    own_resource[own >= 0] = np.searchsorted(row_classes, classes.row[np.searchsorted(live_rows, own[own >= 0])])
    lanes = folded_lanes(system, live, classes, rank_of, size, resource_of, own_resource)
    rendezvous, number = folded_rendezvous(system, classes, lanes, rank_of, resource_of)
    _, stores = np.unique(classes.store, return_index=True)
    store_capacity = system.store_capacity()
    return Scene(
        system=system,
        lanes=lanes,
        rendezvous=rendezvous,
        capacity=system.topology.resources.capacity[rows].tolist(),
        row=rows.tolist(),
        store_capacity=[store_capacity[store] for store in stores.tolist()],
        folded=True,
        meeting_of=number[classes.group],
        lane_of=[classes.rank[a:b] for a, b in zip(system.first_rank, system.first_rank[1:], strict=False)],
    )
