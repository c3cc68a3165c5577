"""Hierarchical: one algorithm inside nodes and one between the members of equal place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.checks import require_call
from clustersim.collective.demand import memory_traffic
from clustersim.collective.direct import direct
from clustersim.collective.layout import Layout
from clustersim.collective.ring import ring
from clustersim.collective.traffic import Algorithm, GroupShape, Phase, Traffic
from clustersim.faults import BadInput, Fault

__all__ = ["Hierarchical", "hierarchical"]

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")

# kind -> (collective, on every lane between nodes) of each part; those between nodes carry S/m, but for all_to_all
_PARTS = {
    "all_reduce": (("reduce_scatter", False), ("all_reduce", True), ("all_gather", False)),
    "all_gather": (("all_gather", True), ("all_gather", False)),
    "reduce_scatter": (("reduce_scatter", False), ("reduce_scatter", True)),
    "all_to_all": (("all_to_all", False), ("all_to_all", True)),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Hierarchical:
    """An algorithm made of two: m members on each of N nodes, n = N·m.

    All-reduce is a reduce-scatter of S inside each node, an all-reduce of S/m among the N members of equal place (a
    lane, so one NIC each) and an all-gather of S inside the node. All-gather goes between nodes first (S/m), then
    inside (S); reduce-scatter the other way round. All-to-all first gathers inside the node, on the member of each
    lane, all that is for the lane (S/m to each of m-1 others), then exchanges on the lane (S/N to each of N-1): the
    NICs carry (N-1)/N·S as they do in a direct one, in N-1 messages in place of n-m.

    Calling it as ``(kind, nbytes, shape)`` gives the flows of both on all nodes and lanes. With rings on both levels
    the serial steps drop from the 2(n-1) of one ring to 2(m-1) + 2(N-1). On a mesh the algorithm inside a node sees
    its rings (``shape.rings``). Each part rounds as its algorithm does, and a member copies its own block in each. A
    rank gives as many SMs as its largest part takes.

    Parameters
    ----------
    inside, between : Algorithm
        of all_reduce, all_gather and reduce_scatter on a group in one node, and on one of a member a node
    exchange : Algorithm
        of all_to_all, for both
    pipelined : bool
        True: chunks flow through all parts at once, if the parts' own do. False: the parts are separate collectives:
        none starts before the one before has ended, and each leaves in memory what the next one reads
    name : str
        for the trace; the topology's protocols for that name apply

    Raises
    ------
    BadInput
        when called, if ``kind`` is another than all_reduce, all_gather, reduce_scatter and all_to_all, ``nbytes`` is
        negative, the nodes hold unequal numbers of members, or a part lacks the collective that is asked of it

    References
    ----------
    Cho et al., "BlueConnect: Decomposing all-reduce for deep learning on heterogeneous network hierarchy", MLSys 2019.
    All-to-all: NVIDIA's PXN (NCCL 2.12) and the two levels of DeepSpeed-MoE (Rajbhandari et al., ICML 2022).
    """

    inside: Algorithm = ring
    between: Algorithm = ring
    exchange: Algorithm = direct
    pipelined: bool = False
    name: str = "hierarchical"

    def __repr__(self) -> str:
        names = [f"{part}={_name_of(getattr(self, part))}" for part in ("inside", "between", "exchange")]
        return f"Hierarchical({', '.join(names)}, pipelined={self.pipelined}, name={self.name!r})"

    def __call__(self, kind: str, nbytes: int, shape: GroupShape) -> Traffic:
        """Flows; see the class."""
        require_call(self.name, kind, nbytes, KINDS)
        layout = Layout.of(shape)
        num_nodes, m = layout.num_nodes, layout.num_lanes
        if shape.num_members != num_nodes * m:
            rule = f"needs equally many members on each node, not {m} to {int(layout.count.max())}"
            raise BadInput([Fault(key="algorithm", value=self.name, rule=rule, nearest="ring")])
        inside, between = (self.exchange,) * 2 if kind == "all_to_all" else (self.inside, self.between)
        parts = []
        for part, on_lanes in _PARTS[kind]:
            if on_lanes and num_nodes > 1:
                share = nbytes if kind == "all_to_all" else -(-nbytes // m)
                parts.append(_on_every_lane(between, part, share, shape, layout))
            elif not on_lanes and m > 1:
                parts.append(_on_every_node(inside, part, nbytes, shape, layout))
        phases = tuple(phase for part in parts for phase in part.phases)
        if self.pipelined:
            memory = memory_traffic(kind, nbytes, shape, phases)
        else:
            memory = sum((part.memory_nbytes for part in parts), np.zeros(shape.num_members, dtype=np.int64))
        return Traffic(
            algorithm=self.name,
            phases=phases,
            pipelined=self.pipelined and all(part.pipelined for part in parts),
            memory_nbytes=memory,
            num_sms=max((part.num_sms for part in parts), default=0),
            num_flows=max((part.num_flows for part in parts), default=1),
            own_nbytes=(max if self.pipelined else sum)([0, *(part.own_nbytes for part in parts)]),
        )


hierarchical = Hierarchical()
"""Rings inside nodes and between them, direct exchanges for all-to-all, one part after the other."""


def _name_of(algorithm: Algorithm) -> str:
    """Of a function its name, for its own repr tells where in memory it is."""
    return getattr(algorithm, "__name__", repr(algorithm))


def _on_every_lane(algorithm: Algorithm, kind: str, nbytes: int, shape: GroupShape, layout: Layout) -> Traffic:
    lane = GroupShape(node=np.arange(layout.num_nodes), in_network=shape.in_network)
    return _spread([(algorithm(kind, nbytes, lane), layout.lanes().T)])


def _on_every_node(algorithm: Algorithm, kind: str, nbytes: int, shape: GroupShape, layout: Layout) -> Traffic:
    """Once for all nodes, or on a mesh once for all nodes whose members are joined alike."""
    members, m = layout.lanes(), layout.num_lanes
    node = np.zeros(m, dtype=np.int64)
    if shape.rings is None:
        return _spread([(algorithm(kind, nbytes, GroupShape(node=node, multicast=shape.multicast)), members)])
    place = np.empty(members.size, dtype=np.int64)
    place[members] = np.arange(m)
    following = place[shape.rings[:, members]].transpose(1, 0, 2)
    patterns, of = np.unique(following.reshape(len(members), -1), axis=0, return_inverse=True)
    made = [GroupShape(node=node, rings=p.reshape(-1, m), multicast=shape.multicast) for p in patterns]
    return _spread([(algorithm(kind, nbytes, one), members[of.reshape(-1) == k]) for k, one in enumerate(made)])


def _spread(made: list[tuple[Traffic, NDArray[np.int64]]]) -> Traffic:
    """Flows of many groups at once.

    Parameters
    ----------
    made : list[tuple[Traffic, NDArray[int64]]]
        flows of one group, and the positions of all groups that have them, shape (num_groups, m). Together they hold
        each member once; phases of equal number run at once
    """
    memory = np.zeros(sum(positions.size for _, positions in made), dtype=np.int64)
    for traffic, positions in made:
        memory[positions] = traffic.memory_nbytes
    placed = zip(*([_placed(phase, positions) for phase in traffic.phases] for traffic, positions in made), strict=True)
    return replace(
        made[0][0],
        phases=tuple(map(_together, placed)),
        memory_nbytes=memory,
        num_sms=max(traffic.num_sms for traffic, _ in made),
        num_flows=max(traffic.num_flows for traffic, _ in made),
    )


def _placed(phase: Phase, positions: NDArray[np.int64]) -> Phase:
    """``phase`` in each of the groups; each has its own trees."""
    tree = None
    if phase.tree is not None:
        tree = (phase.tree + (phase.tree.max(initial=0) + 1) * np.arange(len(positions))[:, None]).reshape(-1)
    return Phase(
        source=positions[:, phase.source].reshape(-1),
        destination=positions[:, phase.destination].reshape(-1),
        nbytes=np.tile(phase.nbytes, len(positions)),
        num_steps=phase.num_steps,
        message_nbytes=phase.message_nbytes,
        tree=tree,
    )


def _together(phases: Sequence[Phase]) -> Phase:
    """One phase of the flows of several, which have no tree in common."""
    trees, used = [], 0
    for phase in phases:
        if phase.tree is not None:
            trees.append(phase.tree + used)
            used += int(phase.tree.max(initial=0)) + 1
    return Phase(
        source=np.concatenate([phase.source for phase in phases]),
        destination=np.concatenate([phase.destination for phase in phases]),
        nbytes=np.concatenate([phase.nbytes for phase in phases]),
        num_steps=max(phase.num_steps for phase in phases),
        message_nbytes=phases[0].message_nbytes,
        tree=np.concatenate(trees) if trees else None,
    )
