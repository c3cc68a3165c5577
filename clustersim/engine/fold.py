"""The folded scene: one lane for each class of ranks that nothing can tell apart.

``DESIGN.md`` states the theorem that the folded run is the full run, and its conditions; the code refers to them as
(a) to (h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.factorize import factorize
from clustersim.engine.group_block import GroupBlock
from clustersim.engine.joint_signature import joint_signature
from clustersim.engine.live import Live
from clustersim.engine.refine import Graph, refine
from clustersim.engine.scene import LaneSpec, RendezvousSpec, Scene
from clustersim.engine.signature import Demand, Signature, weight
from clustersim.engine.system import System

__all__ = ["folded_scene"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Classes:
    """Class number and representatives of each kind of vertex."""

    rank: NDArray[np.int64]
    group: NDArray[np.int64]
    row: NDArray[np.int64]
    store: NDArray[np.int64]
    first_store: dict[tuple[int, str], int]


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
    classes = _classes(system, live.rows, launch_of, declared)
    _, rank_of, size = np.unique(classes.rank, return_index=True, return_counts=True)
    live_rows = np.flatnonzero(live.rows)
    row_classes, at = np.unique(classes.row, return_index=True)
    rows = live_rows[at]
    resource_of = np.full(len(live.rows), -1, dtype=np.int64)
    resource_of[rows] = np.arange(len(row_classes))  # -1 for all but the representatives
    own = _own_memory(system, live.rows)[rank_of]
    own_resource = np.full(len(own), -1, dtype=np.int64)
    own_resource[own >= 0] = np.searchsorted(row_classes, classes.row[np.searchsorted(live_rows, own[own >= 0])])
    lanes = _lanes(system, live, classes, rank_of, size, resource_of, own_resource)
    rendezvous, number = _rendezvous(system, classes, lanes, rank_of, resource_of)
    _, stores = np.unique(classes.store, return_index=True)
    capacity = (
        np.concatenate(
            [
                np.full(int(of.max()) + 1, system.jobs[j].pools[pool].capacity)
                for (j, pool), (of, _) in system.stores.items()
            ]
        )
        if system.stores
        else np.empty(0, np.int64)
    )
    return Scene(
        system=system,
        lanes=lanes,
        rendezvous=rendezvous,
        capacity=system.topology.resources.capacity[rows].tolist(),
        row=rows.tolist(),
        store_capacity=capacity[stores].tolist(),
        folded=True,
        meeting_of=number[classes.group],
        lane_of=[classes.rank[a:b] for a, b in zip(system.first_rank, system.first_rank[1:], strict=False)],
    )


def _classes(
    system: System, live: NDArray[np.bool_], launch_of: NDArray[np.int64], declared: Sequence[int]
) -> _Classes:
    num_ranks, num_groups = system.num_ranks, system.num_groups
    own = _own_memory(system, live)
    shared = live.copy()
    shared[own[own >= 0]] = False
    live_rows = np.flatnonzero(shared)
    vertex_of_row = np.full(len(live), -1, dtype=np.int64)
    vertex_of_row[live_rows] = num_ranks + num_groups + np.arange(len(live_rows))
    u, v, label = [], [], []
    labels: dict[object, int] = {}

    def join(a: NDArray[np.int64], b: NDArray[np.int64], name: object) -> None:
        u.append(a)
        v.append(b)
        label.append(np.full(len(a), labels.setdefault(name, len(labels)), dtype=np.int64))

    capacity = np.append(system.topology.resources.capacity, -1)
    varies = np.zeros(len(capacity), dtype=np.int64)
    varies[list(declared)] = 1 + np.arange(len(declared))
    rank_columns = [launch_of, system.program_of, system.kind_of, capacity[own], varies[own]]
    if system.noise is not None:
        rank_columns.append(np.arange(num_ranks))
    group_colour = np.empty(num_groups, dtype=np.int64)
    next_colour = 0
    for b, block in enumerate(system.blocks):
        groups, by_phase = block.first + np.arange(len(block.members)), block.cost.by_phase
        for position, slot in enumerate(block.slots):
            # a rank's own memory is one vertex with the rank: what groups put on it is part of the membership
            memory = tuple(by_phase.memory_nbytes[position].tolist())
            join(block.members[:, position], num_ranks + groups, ("slot", slot, memory))
        code = factorize(*by_phase.ns.T, *by_phase.peak_load.T)
        group_colour[groups] = next_colour + code
        next_colour += int(code.max()) + 1
        used = shared[block.cost.row]
        loads = factorize(*by_phase.load[used].T) if used.any() else np.empty(0, np.int64)
        for k in range(int(loads.max()) + 1 if len(loads) else 0):
            alike = np.flatnonzero(used)[loads == k]
            join(
                num_ranks + block.first + block.cost.group[alike], vertex_of_row[block.cost.row[alike]], ("load", b, k)
            )
    for edges in system.path_edges:
        used = shared[edges.rows]
        join(edges.ranks[used], vertex_of_row[edges.rows[used]], ("path", edges.label))
    store_colour: list[NDArray[np.int64]] = []
    first_store, num_stores = {}, 0
    for p, ((j, pool), (of, place)) in enumerate(system.stores.items()):
        first_store[j, pool] = num_stores
        ranks = np.arange(system.first_rank[j], system.first_rank[j + 1])
        join(ranks, num_ranks + num_groups + len(live_rows) + num_stores + of, ("pool", p))
        store_colour.append(np.full(int(of.max()) + 1, p, dtype=np.int64))
        num_stores += int(of.max()) + 1
        # contenders for one store are told apart by the key that orders their grants: condition (d)
        key = np.zeros(num_ranks, dtype=np.int64)
        key[ranks] = place
        rank_columns.append(key)
    resources = system.topology.resources
    if len(live_rows):
        rows = factorize(resources.kind[live_rows], resources.capacity[live_rows], varies[live_rows])
    else:
        rows = live_rows
    parts = [factorize(*rank_columns), group_colour, rows, np.concatenate([*store_colour, np.empty(0, np.int64)])]
    colour, offset = [], 0
    for part in parts:
        colour.append(part + offset)
        offset += int(part.max()) + 1 if len(part) else 0
    joined = [np.concatenate(x) if x else np.empty(0, np.int64) for x in (u, v, label)]
    final = refine(Graph(colour=np.concatenate(colour).astype(np.int64), u=joined[0], v=joined[1], label=joined[2]))
    ends = np.cumsum([num_ranks, num_groups, len(live_rows)])
    rank, group, row, store = (_in_order(part) for part in np.split(final, ends))
    row_of = np.full(len(live), -1, dtype=np.int64)
    row_of[live_rows] = row
    has_own = own >= 0
    row_of[own[has_own]] = (int(row.max()) + 1 if len(row) else 0) + rank[has_own]
    row = row_of[np.flatnonzero(live)]
    return _Classes(rank=rank, group=group, row=row, store=store, first_store=first_store)


def _own_memory(system: System, live: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Row of each rank's memory where it can bind and no other rank sits on that device, -1 elsewhere."""
    hbm = system.topology.local.get("hbm")
    if hbm is None:
        return np.full(system.num_ranks, -1, dtype=np.int64)
    rows = hbm.rows[system.device, 0]
    users = np.bincount(rows[rows >= 0], minlength=len(live))
    return np.where((rows >= 0) & live[rows] & (users[rows] == 1), rows, -1)


def _in_order(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number distinct values by their first appearance, so that class 0 is rank 0's."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse.reshape(-1)]


def _lanes(
    system: System,
    live: Live,
    classes: _Classes,
    rank_of: NDArray[np.int64],
    size: NDArray[np.int64],
    resource_of: NDArray[np.int64],
    own_resource: NDArray[np.int64],
) -> list[LaneSpec]:
    # a class puts on a resource what all its members that cross it put there together
    crossing: dict[tuple[int, int], dict[int, list[NDArray[np.int64]]]] = {}
    for edges in system.path_edges:
        at = np.flatnonzero(resource_of[edges.rows] >= 0)
        for rank, resource in zip(edges.ranks[at].tolist(), resource_of[edges.rows[at]].tolist(), strict=True):
            by_rank = crossing.setdefault((int(classes.rank[rank]), resource), {})
            by_rank.setdefault(rank, []).append(edges.loads)
    loads_of: dict[int, list[tuple[int, list[NDArray[np.int64]]]]] = {}
    for (c, resource), by_rank in crossing.items():
        loads_of.setdefault(c, []).append((resource, [np.sum(loads, axis=0) for loads in by_rank.values()]))
    lanes = []
    for c, rank in enumerate(rank_of.tolist()):
        program, kind = int(system.program_of[rank]), int(system.kind_of[rank])
        signatures: list[Signature | None] = []
        for k, cost in enumerate(system.local[program, kind]):
            if cost is None:
                signatures.append(None)
                continue
            peak = system.peak_load(program, k)
            demands: list[Demand] = []
            for resource, members in loads_of.get(c, ()):
                each = [int(load[k]) for load in members if load[k]]
                if each:
                    demands.append((resource, sum(each), sum(weight(load, 1, peak) for load in each)))
            signatures.append(
                Signature(ns=cost.ns, sm_ns=cost.crowded_ns, demands=tuple(demands), peak_load=peak, bound=cost.bound)
            )
        job = int(np.searchsorted(system.first_rank, rank, side="right")) - 1
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
                signatures=signatures,
                rendezvous={},
                stores=stores,
                num_sms=system.num_sms(rank),
                crowded=live.crowded.get((program, kind), np.ones(len(system.programs[program]), dtype=bool)),
                own_memory=int(own_resource[c]),
            )
        )
    return lanes


def _rendezvous(
    system: System, classes: _Classes, lanes: list[LaneSpec], rank_of: NDArray[np.int64], resource_of: NDArray[np.int64]
) -> tuple[list[RendezvousSpec], NDArray[np.int64]]:
    """The rendezvous, and the one that stands for each class of groups."""
    rendezvous: list[RendezvousSpec] = []
    number = np.full(int(classes.group.max()) + 1 if len(classes.group) else 0, -1, dtype=np.int64)
    for b, block in enumerate(system.blocks):
        mine = classes.group[block.first : block.first + len(block.members)]
        kinds, first = np.unique(mine, return_index=True)
        demands, of_signature = _demands(block, mine, resource_of), block.cost.by_phase.phases.of_signature
        for c, g in zip(kinds.tolist(), first.tolist(), strict=True):
            numbers = np.arange(block.cost.by_phase.phases.num_phases)
            signatures = [
                joint_signature(system, b, g, s, [demands.get((c, p), []) for p in numbers[of_signature(s)].tolist()])
                for s in range(len(block.traffic))
            ]
            members = dict.fromkeys(zip(classes.rank[block.members[g]].tolist(), block.slots, strict=True))
            number[c] = len(rendezvous)
            rendezvous.append(
                RendezvousSpec(
                    name=f"{block.name}/{int(block.number[g])}",
                    job=block.job,
                    block=b,
                    group=g,
                    signatures=signatures,
                    members=list(members),
                )
            )
    is_representative = np.zeros(system.num_ranks, dtype=bool)
    is_representative[rank_of] = True
    for block in system.blocks:
        g, position = np.nonzero(is_representative[block.members])
        for group, at in zip(g.tolist(), position.tolist(), strict=True):
            lane = lanes[int(classes.rank[block.members[group, at]])]
            lane.rendezvous[block.slots[at]] = int(number[classes.group[block.first + group]])
    return rendezvous, number


def _demands(
    block: GroupBlock, class_of: NDArray[np.int64], resource_of: NDArray[np.int64]
) -> dict[tuple[int, int], list[Demand]]:
    """(class, phase) -> what all groups of the class put together on each representative resource."""
    cost, by_phase = block.cost, block.cost.by_phase
    edges = np.flatnonzero(resource_of[cost.row] >= 0)
    group = cost.group[edges]
    resource = resource_of[cost.row[edges]]
    demands: dict[tuple[int, int], list[Demand]] = {}
    num_flows = by_phase.phases.repeat(np.array([what.num_flows for what in block.traffic], dtype=np.int64)).tolist()
    for p, flows in enumerate(num_flows):
        alike = factorize(class_of[group], resource, by_phase.load[edges, p], by_phase.peak_load[group, p])
        totals: dict[tuple[int, int], tuple[int, int]] = {}
        for e, count in zip(*np.unique(alike, return_index=True, return_counts=True)[1:], strict=True):
            load, peak = int(by_phase.load[edges[e], p]), max(1, int(by_phase.peak_load[group[e], p]))
            key = int(class_of[group[e]]), int(resource[e])
            amount, weighted = totals.get(key, (0, 0))
            totals[key] = amount + int(count) * load, weighted + int(count) * weight(load, flows, peak)
        for (c, r), (amount, weighted) in totals.items():
            if amount:
                demands.setdefault((c, p), []).append((r, amount, weighted))
    return demands
