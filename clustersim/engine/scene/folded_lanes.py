"""The lanes of a folded scene: what all ranks of a class ask of resources together."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.scene.classes import Classes
from clustersim.engine.scene.live import Live
from clustersim.engine.scene.own_signatures import own_signatures
from clustersim.engine.scene.scene import LaneSpec
from clustersim.engine.scene.signature import Demand, weight
from clustersim.engine.system.system import System

__all__ = ["folded_lanes"]


def folded_lanes(
    system: System,
    live: Live,
    classes: Classes,
    rank_of: NDArray[np.int64],
    size: NDArray[np.int64],
    resource_of: NDArray[np.int64],
    own_resource: NDArray[np.int64],
) -> list[LaneSpec]:
    """One lane a class.

    Parameters
    ----------
    live : Live
        what can bind
    classes : Classes
    rank_of, size : NDArray[int64], shape (number of classes,)
        representative of each class, and how many ranks are in it
    resource_of : NDArray[int64], shape (num_resources,)
        resource of the scene; -1 for all but the representatives
    own_resource : NDArray[int64], shape (number of classes,)
        by class, the resource of the scene that is its representative's memory, or -1
    """
    loads_of = _loads_of(system, classes, resource_of)
    lanes = []
    for c, rank in enumerate(rank_of.tolist()):
        program, kind = int(system.program_of[rank]), int(system.kind_of[rank])
        job = system.job_of(rank)
        at = rank - int(system.first_rank[job])
        stores = {
            pool: (int(classes.store[classes.first_store[j, pool] + of[at]]), int(place[at]))
            for (j, pool), (of, place) in system.stores.items()
            if j == job
        }
        lanes.append(
            LaneSpec(
                job=job,
                rank=rank,
                multiplicity=int(size[c]),
                program=program,
                kind=kind,
                signatures=own_signatures(system, program, kind, partial(_demands, loads_of.get(c, []))),
                rendezvous={},
                stores=stores,
                num_sms=system.num_sms(rank),
                crowded=live.crowded.get((program, kind), np.ones(len(system.programs[program]), dtype=bool)),
                own_memory=int(own_resource[c]),
            )
        )
    return lanes


_Loads = list[tuple[int, list[NDArray[np.int64]]]]
"""(resource of the scene, of each rank of a class that crosses it the loads of all distinct ops)"""


def _loads_of(system: System, classes: Classes, resource_of: NDArray[np.int64]) -> dict[int, _Loads]:
    """By class: a class puts on a resource what all its members that cross it put there together."""
    crossing: dict[tuple[int, int], dict[int, list[NDArray[np.int64]]]] = {}
    for edges in system.path_edges:
        at = np.flatnonzero(resource_of[edges.rows] >= 0)
        for rank, resource in zip(edges.ranks[at].tolist(), resource_of[edges.rows[at]].tolist(), strict=True):
            by_rank = crossing.setdefault((int(classes.rank[rank]), resource), {})
            by_rank.setdefault(rank, []).append(edges.loads)
    loads_of: dict[int, _Loads] = {}
    for (c, resource), by_rank in crossing.items():
        loads_of.setdefault(c, []).append((resource, [np.sum(loads, axis=0) for loads in by_rank.values()]))
    return loads_of


def _demands(loads_of: _Loads, op: int, peak: int) -> list[Demand]:
    """What all ranks of a class put together on each resource."""
    demands: list[Demand] = []
    for resource, members in loads_of:
        each = [int(load[op]) for load in members if load[op]]
        if each:
            demands.append((resource, sum(each), sum(weight(load, 1, peak) for load in each)))
    return demands
