"""The rendezvous of a folded scene: what all groups of a class ask of resources together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.factorize import factorize
from clustersim.engine.scene.classes import Classes
from clustersim.engine.scene.joint_signature import joint_signature
from clustersim.engine.scene.scene import LaneSpec, RendezvousSpec
from clustersim.engine.scene.signature import Demand, weight
from clustersim.engine.system.group_block import GroupBlock
from clustersim.engine.system.system import System

__all__ = ["folded_rendezvous"]


def folded_rendezvous(
    system: System, classes: Classes, lanes: list[LaneSpec], rank_of: NDArray[np.int64], resource_of: NDArray[np.int64]
) -> tuple[list[RendezvousSpec], NDArray[np.int64]]:
    """One rendezvous a class of groups; the lanes take the numbers of theirs.

    Parameters
    ----------
    classes : Classes
    lanes : list[LaneSpec]
    rank_of : NDArray[int64]
        the ranks that the lanes stand for
    resource_of : NDArray[int64], shape (num_resources,)
        resource of the scene; -1 for all but the representatives

    Returns
    -------
    list[RendezvousSpec]
    NDArray[int64], shape (number of classes,)
        number of the rendezvous of each class of groups
    """
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
