"""Trees of switches with ideal ECMP: the parallel uplinks of one group of switches are one resource a direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.switch import Switch
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.resources import Block

__all__ = ["SwitchTree", "Tier", "Tree"]

GROUPS = ("leaf", "pod", "zone")
"""Names of the groups below the top: a leaf is one switch, a pod leaves under common spines, a zone pods under
common cores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tier:
    """One level of groups below the top of a tree.

    Parameters
    ----------
    nodes : int
        nodes under one group
    rails : int
        groups side by side over the same nodes; port p of a node hangs on that number p modulo ``rails``
    num_uplinks : int
        links from one group to the level above
    """

    nodes: int
    rails: int
    num_uplinks: int


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
    ecmp : str
        ``ideal``: flows spread evenly over parallel links
    min_levels : int
        see ``levels``

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
    min_levels: int = 1

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
        if self.ecmp != "ideal":
            rule = "is not a way to choose among parallel links that is modelled"
            faults.append(Fault(key="fabric.ecmp", value=self.ecmp, rule=rule, nearest="ideal"))
        if not faults:
            faults = self._size_faults()
        if faults:
            raise BadInput(faults)

    def _size_faults(self) -> list[Fault]:
        lowest = next(radix for radix in range(2, 1 << 20) if self._leaf_nodes(radix) and radix // 2 >= self.rails)
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

    def _leaf_nodes(self, radix: int) -> int:
        uplinks = int(radix / (1 + self.oversubscription))
        return min(int(uplinks * self.oversubscription), radix - uplinks) // self.ports_per_leaf

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
        tiers = [Tier(nodes=nodes, rails=self.rails, num_uplinks=uplinks)]
        for level in range(2, self.num_levels):
            above = self._group_nodes(level)
            leaves = above // nodes * self.rails
            tiers.append(Tier(nodes=above, rails=1, num_uplinks=leaves * uplinks))
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
        for name, tier in zip(GROUPS, tiers, strict=False):
            blocks += [
                Block(
                    kind=f"{name}_{way}",
                    shape=(-(-self.num_nodes // tier.nodes) * tier.rails,),
                    capacity=port * tier.num_uplinks,
                    latency=self.switch.latency,
                    label=f"{name}{{}}/{way}",
                    num_links=tier.num_uplinks,
                )
                for way in ("up", "down")
            ]
        first = np.concatenate(([0], np.cumsum([block.count for block in blocks])))
        path = SwitchTree(num_ports=self.ports.count, tiers=tiers, first=tuple(int(row) for row in first))
        return Fabric(ports=self.ports, blocks=tuple(blocks), path=path, relay_rails=relay_rails, notes=notes)


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchTree:
    """Paths between ports through a tree of switches: a pair climbs until one group holds both ends.

    Parameters
    ----------
    num_ports : int
        ports of a node
    tiers : tuple[Tier, ...]
        from the leaves up
    first : tuple[int, ...]
        first row of the ports' ``tx`` and ``rx`` and of each tier's ``up`` and ``down``
    """

    num_ports: int
    tiers: tuple[Tier, ...]
    first: tuple[int, ...]

    def __call__(
        self,
        source_node: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        destination_port: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Rows in order of travel, shape (n, 2 · len(tiers) + 2); see :data:`~clustersim.topology.fabric.PortPath`."""
        rows = np.full((len(source_node), 2 * len(self.tiers) + 2), -1, dtype=np.int64, order="F")
        rows[:, 0] = self.first[0] + source_node * self.num_ports + source_port
        rows[:, -1] = self.first[1] + destination_node * self.num_ports + destination_port
        for level, tier in enumerate(self.tiers, start=1):
            source, destination = source_node // tier.nodes, destination_node // tier.nodes
            if tier.rails > 1:
                source = source * tier.rails + source_port % tier.rails
                destination = destination * tier.rails + destination_port % tier.rails
            apart = source != destination
            rows[:, level] = np.where(apart, self.first[2 * level] + source, -1)
            rows[:, -1 - level] = np.where(apart, self.first[2 * level + 1] + destination, -1)
        return rows
