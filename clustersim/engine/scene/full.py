"""The full scene: one lane a rank, one rendezvous a group, one resource a resource. It shares nothing with folding."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.scene.joint_signature import joint_signature
from clustersim.engine.scene.live import Live
from clustersim.engine.scene.own_signatures import own_signatures
from clustersim.engine.scene.scene import LaneSpec, RendezvousSpec, Scene
from clustersim.engine.scene.signature import Demand, weight
from clustersim.engine.system.system import System

__all__ = ["full_scene"]


def full_scene(system: System, live: Live) -> Scene:
    """Play every rank.

    Parameters
    ----------
    live : Live
        what can bind
    """
    rows = np.flatnonzero(live.rows)
    resource_of = {int(row): k for k, row in enumerate(rows)}
    lanes = _lanes(system, live, resource_of)
    return Scene(
        system=system,
        lanes=lanes,
        rendezvous=_rendezvous(system, live, resource_of, lanes),
        capacity=system.topology.resources.capacity[rows].tolist(),
        row=rows.tolist(),
        store_capacity=system.store_capacity(),
        folded=False,
        meeting_of=np.arange(system.num_groups),
        lane_of=[np.arange(a, b) for a, b in zip(system.first_rank, system.first_rank[1:], strict=False)],
    )


def _lanes(system: System, live: Live, resource_of: Mapping[int, int]) -> list[LaneSpec]:
    """One lane a rank; ``resource_of`` by row."""
    paths: list[dict[int, _Loads]] = [{} for _ in system.programs]
    for edges in system.path_edges:
        for rank, row in zip(edges.ranks.tolist(), edges.rows.tolist(), strict=True):
            if row in resource_of:
                paths[edges.program].setdefault(rank, []).append((resource_of[row], edges.loads))
    lanes = []
    for rank in range(system.num_ranks):
        program, kind = int(system.program_of[rank]), int(system.kind_of[rank])
        lanes.append(
            LaneSpec(
                job=system.job_of(rank),
                rank=rank,
                multiplicity=1,
                program=program,
                kind=kind,
                signatures=own_signatures(system, program, kind, partial(_demands, paths[program].get(rank, []))),
                rendezvous={},
                stores={},
                num_sms=system.num_sms(rank),
                crowded=live.crowded.get((program, kind), np.ones(len(system.programs[program]), dtype=bool)),
            )
        )
    num_stores = 0
    for (j, pool), (store, place) in system.stores.items():
        rank_0 = int(system.first_rank[j])
        for rank, (of, key) in enumerate(zip(store.tolist(), place.tolist(), strict=True), start=rank_0):
            lanes[rank].stores[pool] = num_stores + of, key
        num_stores += int(store.max()) + 1
    return lanes


_Loads = list[tuple[int, NDArray[np.int64]]]
"""(resource of the scene, loads of all distinct ops of a program)"""


def _demands(loads_of: _Loads, op: int, peak: int) -> list[Demand]:
    """What one rank puts on each resource."""
    loads: dict[int, int] = {}
    for resource, by_op in loads_of:
        if by_op[op]:
            loads[resource] = loads.get(resource, 0) + int(by_op[op])
    return [(r, load, weight(load, 1, peak)) for r, load in loads.items()]


def _rendezvous(
    system: System, live: Live, resource_of: Mapping[int, int], lanes: list[LaneSpec]
) -> list[RendezvousSpec]:
    """One rendezvous a group; the lanes take their numbers."""
    rendezvous: list[RendezvousSpec] = []
    for b, block in enumerate(system.blocks):
        joint, by_phase = block.cost, block.cost.by_phase
        first = np.searchsorted(joint.group, np.arange(len(block.members) + 1))
        for g, members in enumerate(block.members.tolist()):
            edge = np.arange(first[g], first[g + 1])
            edge = edge[live.rows[joint.row[edge]]]
            kinds = []
            for s, what in enumerate(block.traffic):
                of_phases = []
                for c in range(*by_phase.phases.of_signature(s).indices(len(by_phase.ns.T))):
                    peak = max(1, int(by_phase.peak_load[g, c]))
                    crossed = [(resource_of[int(joint.row[e])], int(by_phase.load[e, c])) for e in edge]
                    of_phases.append([(r, load, weight(load, what.num_flows, peak)) for r, load in crossed if load])
                kinds.append(joint_signature(system, b, g, s, of_phases))
            for rank, slot in zip(members, block.slots, strict=True):
                lanes[rank].rendezvous[slot] = len(rendezvous)
            rendezvous.append(
                RendezvousSpec(
                    name=f"{block.name}/{int(block.number[g])}",
                    job=block.job,
                    block=b,
                    group=g,
                    signatures=kinds,
                    members=list(zip(members, block.slots, strict=True)),
                )
            )
    return rendezvous
