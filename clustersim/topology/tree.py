"""Trees of switches, laid out from a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.switch import Switch
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.hashed_tree import HashedTree
from clustersim.topology.resources import Block
from clustersim.topology.switch_tree import ReducingTree, SwitchTree, Tier

__all__ = ["SwitchTree", "Tier", "Tree"]

GROUPS = ("leaf", "pod", "zone")
"""Names of the groups below the top: a leaf is one switch, a pod leaves under common spines, a zone pods under
common cores."""


MOST_PORTS = 2**16
"""Ports of the largest switch that is looked for."""

ECMP = ("ideal", "hashed")
HASHED = "hashed ECMP: nearly every rank whose traffic leaves its leaf is a class of its own"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """The numbers that a tree is laid out from.

    A leaf of R [ports] with over-subscription o gives floor(R / (1 + o)) ports to uplinks and o times as many to nodes,
    as far as whole nodes fill them; its uplinks are then what its nodes fill divided by o. Above the leaves nothing is
    over-subscribed: half of a switch's ports lead up, and the top has them all lead down (Al-Fares et al., SIGCOMM
    2008, section 3). Group sizes follow from that.

    Parameters
    ----------
    ports : Ports
        of each node
    switch : Switch
        every switch
    num_nodes : int
        nodes to hold
    rails : int
        leaves side by side over the same nodes, each with every so many ports of a node; 1 where a leaf has them all
    oversubscription : float
        bandwidth into a leaf from its nodes over bandwidth out of it, at least 1
    levels : int, optional
        levels of switches; as few as hold the nodes when left out, but not below ``min_levels``
    radix : int, optional
        ports of a switch; the switch's own when left out
    ecmp : {"ideal", "hashed"}
        how flows take parallel links: spread evenly over all of them, which are one resource; or each one by hash of
        its two ports, which makes every link a resource of its own
    ecmp_seed : int
        of the hash
    min_levels : int
        see ``levels``
    sharp : bool
        whether the switches add up what passes them: each group of switches has a reduction engine, a resource

    Raises
    ------
    BadInput
        when a value is out of range, or the nodes do not fit
    """

    ports: Ports
    switch: Switch
    num_nodes: int
    rails: int
    oversubscription: float = 1.0
    levels: int | None = None
    radix: int | None = None
    ecmp: str = "ideal"
    ecmp_seed: int = 0
    min_levels: int = 1
    sharp: bool = False

    def __post_init__(self) -> None:
        top = len(GROUPS) + 1
        faults = []
        if self.num_nodes < 1:
            faults.append(Fault(key="nodes", value=self.num_nodes, rule="must be at least 1", nearest=1))
        if not 1 <= self.oversubscription < float("inf"):
            rule = "must be at least 1 and finite"
            faults.append(Fault(key="fabric.oversubscription", value=self.oversubscription, rule=rule, nearest=1))
        if self.levels is not None and not 1 <= self.levels <= top:
            rule = f"must be from 1 to {top}"
            nearest = min(max(self.levels, 1), top)
            faults.append(Fault(key="fabric.levels", value=self.levels, rule=rule, nearest=nearest))
        if not 1 <= self.rails <= self.ports.count:
            rule = f"must be from 1 to the {self.ports.count} ports of a node"
            nearest = min(max(self.rails, 1), self.ports.count)
            faults.append(Fault(key="fabric.rails", value=self.rails, rule=rule, nearest=nearest))
        if self.ecmp not in ECMP:
            rule = f"is not a way to choose among parallel links: {', '.join(ECMP)}"
            like = nearest_name(self.ecmp, ECMP) or "ideal"
            faults.append(Fault(key="fabric.ecmp", value=self.ecmp, rule=rule, nearest=like))
        if self.ecmp_seed < 0:
            rule = "must be zero or positive"
            faults.append(Fault(key="fabric.ecmp_seed", value=self.ecmp_seed, rule=rule, nearest=0))
        if self.sharp and self.ecmp == "hashed":
            rule = "needs fabric.ecmp=ideal: a reduction keeps to one tree of links, not to one for each pair of ports"
            faults.append(Fault(key="fabric.sharp", value=True, rule=rule, nearest=False))
        if self.sharp and self.switch.reduction_bandwidth is None:
            rule = f"needs switches that reduce: {self.switch.name} has no reduction_bandwidth"
            faults.append(Fault(key="fabric.sharp", value=True, rule=rule, nearest=False))
        if not faults:
            faults = self._size_faults()
        if faults:
            raise BadInput(faults)

    def _size_faults(self) -> list[Fault]:
        fitting = (radix for radix in range(2, MOST_PORTS + 1) if self._leaf_nodes(radix) and radix // 2 >= self.rails)
        lowest = next(fitting, None)
        if lowest is None:
            rule = f"leaves no uplink beside the ports of one node on a switch of {MOST_PORTS} ports"
            nearest = next((o for o in range(self.num_ports, 0, -1) if self._leaf_nodes(self.num_ports, o)), 1)
            return [Fault(key="fabric.oversubscription", value=self.oversubscription, rule=rule, nearest=nearest)]
        if self.num_ports < lowest:
            rule = f"must be at least {lowest} for the ports of one node and an uplink to fit on its leaves"
            return [Fault(key="fabric.radix", value=self.num_ports, rule=rule, nearest=lowest)]
        top = len(GROUPS) + 1
        if self.levels is not None and self.num_nodes > self.capacity(self.levels):
            needed = next((n for n in range(1, top + 1) if self.num_nodes <= self.capacity(n)), None)
            if needed is not None:
                rule = f"hold {self.capacity(self.levels)} nodes of the {self.num_nodes}"
                return [Fault(key="fabric.levels", value=self.levels, rule=rule, nearest=needed)]
        if self.num_nodes > self.capacity(top):
            rule = f"must be at most {self.capacity(top)} for {top} levels of {self.num_ports}-port switches"
            return [Fault(key="nodes", value=self.num_nodes, rule=rule, nearest=self.capacity(top))]
        return []

    @property
    def num_ports(self) -> int:
        """Ports of a switch."""
        return self.switch.radix if self.radix is None else self.radix

    @property
    def ports_per_leaf(self) -> int:
        """Links from one node to one leaf."""
        return self.ports.num_links * -(-self.ports.count // self.rails)

    @property
    def num_levels(self) -> int:
        """Levels of switches."""
        if self.levels is not None:
            return self.levels
        first = max(self.min_levels, 2 if self.oversubscription > 1 else 1)
        return next(n for n in range(first, len(GROUPS) + 2) if self.num_nodes <= self.capacity(n))

    def capacity(self, levels: int) -> int:
        """Nodes that ``levels`` levels hold."""
        if levels == 1:
            return self.num_ports // self.ports_per_leaf
        if levels == 2:
            return self.num_ports // self.rails * self._leaf_nodes(self.num_ports)
        return self.num_ports * self._group_nodes(levels - 1)

    def _leaf_nodes(self, radix: int, oversubscription: float | None = None) -> int:
        over = self.oversubscription if oversubscription is None else oversubscription
        uplinks = int(radix / (1 + over))
        return min(int(uplinks * over), radix - uplinks) // self.ports_per_leaf

    def _group_nodes(self, level: int) -> int:
        """Nodes under one group: level 1 is a leaf, 2 a pod, 3 a zone."""
        half = self.num_ports // 2
        nodes = self._leaf_nodes(self.num_ports)
        return nodes if level == 1 else half // self.rails * nodes * half ** (level - 2)

    def tiers(self) -> tuple[Tier, ...]:
        """The groups below the top, leaves first."""
        if self.num_levels == 1:
            return ()
        nodes = self._group_nodes(1)
        uplinks = max(1, round(nodes * self.ports_per_leaf / self.oversubscription))
        sizes = [nodes] + [self._group_nodes(level) for level in range(2, self.num_levels)]
        tiers = []
        for i, size in enumerate(sizes):
            rails = 1 if i else self.rails
            num_uplinks = uplinks * (size // nodes * self.rails if i else 1)
            top = i == len(sizes) - 1
            groups = rails * (-(-self.num_nodes // size) if top else sizes[i + 1] // size)
            above = -(-groups * num_uplinks // (self.num_ports if top else self.num_ports // 2))
            tiers.append(Tier(nodes=size, rails=rails, num_uplinks=num_uplinks, num_above=min(above, num_uplinks)))
        return tuple(tiers)

    def fabric(self, *, relay_rails: int = 0, notes: tuple[str, ...] = ()) -> Fabric:
        """Lay the tree out; the parameters are those of :class:`~clustersim.topology.fabric.Fabric`."""
        nic, tiers = self.ports.nic, self.tiers()
        port = min(self.switch.port_bandwidth, nic.bandwidth) * nic.efficiency
        blocks = [
            Block(
                kind="nic",
                shape=(self.num_nodes, self.ports.count),
                capacity=nic.payload_bandwidth * self.ports.num_links,
                latency=nic.latency + switch_latency,
                label=f"node{{}}/nic{{}}.{way}",
                num_links=self.ports.num_links,
            )
            for way, switch_latency in (("tx", self.switch.latency), ("rx", 0.0))
        ]
        levels = (*tiers, Tier(nodes=self.num_nodes, rails=1 if tiers else self.rails, num_uplinks=0, num_above=0))
        names = (*GROUPS[: len(tiers)], "core" if tiers else GROUPS[0])
        hashed = self.ecmp == "hashed"
        for name, tier in zip(names, tiers, strict=False):
            groups = -(-self.num_nodes // tier.nodes) * tier.rails
            blocks += [
                Block(
                    kind=f"{name}_{way}",
                    shape=(groups, tier.num_uplinks) if hashed else (groups,),
                    capacity=port if hashed else port * tier.num_uplinks,
                    latency=self.switch.latency,
                    label=f"{name}{{}}/{way}[{{}}]" if hashed else f"{name}{{}}/{way}",
                    num_links=1 if hashed else tier.num_uplinks,
                )
                for way in ("up", "down")
            ]
        if self.sharp:
            blocks += self._engines(levels, names)
        first = tuple(int(row) for row in np.concatenate(([0], np.cumsum([block.count for block in blocks]))))
        path = SwitchTree(num_ports=self.ports.count, levels=levels, names=names, first=first)
        if hashed:
            notes += (HASHED if tiers else "fabric.ecmp: no effect: there are no parallel links",)
        return Fabric(
            ports=self.ports,
            blocks=tuple(blocks),
            path=HashedTree(groups=path, first=first, seed=self.ecmp_seed) if hashed else path,
            relay_rails=relay_rails,
            reducing=ReducingTree(links=path, engines=first[2 * len(levels) : -1]) if self.sharp else None,
            reduction_slots=self.switch.reduction_slots or 0,
            notes=notes,
        )

    def _engines(self, levels: tuple[Tier, ...], names: tuple[str, ...]) -> list[Block]:
        """Reduction engines of each level: a leaf's is one switch's, a higher group's those of all its switches."""
        switches = [1, *(tier.num_above for tier in levels[:-1])]
        return [
            Block(
                kind="reduction",
                shape=(-(-self.num_nodes // tier.nodes) * tier.rails,),
                capacity=(self.switch.reduction_bandwidth or 0.0) * num_switches,
                latency=0.0,
                label=f"{name}{{}}/reduce",
                num_links=num_switches,
            )
            for name, tier, num_switches in zip(names, levels, switches, strict=True)
        ]
