"""Paths through a tree of switches whose parallel links are one resource: a pair climbs until one group holds both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outage", "ReducingTree", "SwitchTree", "Tier"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tier:
    """One level of groups of a tree.

    Parameters
    ----------
    nodes : int
        nodes under one group
    rails : int
        groups side by side over the same nodes; port p of a node hangs on that number p modulo ``rails``
    num_uplinks : int
        links from one group to the level above; 0 at the top
    num_above : int
        switches of the group above that these links are spread over, link i to switch i modulo ``num_above``
    """

    nodes: int
    rails: int
    num_uplinks: int
    num_above: int

    def group(self, node: NDArray[np.int64], port: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of the group that each port hangs under."""
        group = node // self.nodes
        return group * self.rails + port % self.rails if self.rails > 1 else group


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Outage:
    """What switches that fail take with them.

    Parameters
    ----------
    rows : NDArray[int64], shape (n,)
        resources, by the fabric's own rows
    share : float
        of their capacity that is lost
    num_switches : int
        switches of that name
    """

    rows: NDArray[np.int64]
    share: float
    num_switches: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchTree:
    """Paths between ports; ideal ECMP.

    Parameters
    ----------
    num_ports : int
        ports of a node
    levels : tuple[Tier, ...]
        from the leaves up, the top among them
    names : tuple[str, ...]
        of a group of each level
    first : tuple[int, ...]
        first row of the ports' ``tx`` and ``rx`` and of each tier's ``up`` and ``down``
    """

    num_ports: int
    levels: tuple[Tier, ...]
    names: tuple[str, ...]
    first: tuple[int, ...]

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The levels below the top."""
        return self.levels[:-1]

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
            source, destination = tier.group(source_node, source_port), tier.group(destination_node, destination_port)
            apart = source != destination
            rows[:, level] = np.where(apart, self.first[2 * level] + source, -1)
            rows[:, -1 - level] = np.where(apart, self.first[2 * level + 1] + destination, -1)
        return rows

    def outage(self, name: str, count: int) -> Outage | None:
        """What is lost when ``count`` of the switches called ``name`` fail.

        A leaf is one switch and takes the ports on it; ``rail3`` is all leaves of a rail. A higher group is several,
        each with its share of the links below and above it. None when no switch has that name.
        """
        if rail := re.fullmatch(r"rail(\d+)", name):
            return self._ports(np.arange(self.num_ports) % self.levels[0].rails == int(rail[1]))
        found = self.level(name)
        if found is None:
            return None
        level, group = found
        if level == 0:
            return self._ports(self._groups(0) == group)
        num_switches = self.tiers[level - 1].num_above
        rows = [self.first[2 + 2 * t + way] + g for t, g in self.bundles(level, group) for way in (0, 1)]
        return Outage(rows=np.concatenate(rows), share=min(1.0, count / num_switches), num_switches=num_switches)

    def level(self, name: str) -> tuple[int, int] | None:
        """Level and number of the group called ``name``, None when there is none."""
        parts = re.fullmatch(r"([a-z]+)(\d+)", name)
        if parts is None or parts[1] not in self.names:
            return None
        level, group = self.names.index(parts[1]), int(parts[2])
        return (level, group) if group <= int(self._groups(level).max()) else None

    def bundles(self, level: int, group: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """(tier, groups) whose links end on the switches of a group above the leaves: those below it, and its own."""
        below = np.unique(self._groups(level - 1)[self._groups(level) == group])
        yield level - 1, below
        if level < len(self.tiers):
            yield level, np.array([group], dtype=np.int64)

    def _groups(self, level: int) -> NDArray[np.int64]:
        """Group of each port at a level, shape (nodes, ports)."""
        node, port = np.ogrid[: self.levels[-1].nodes, : self.num_ports]
        shape = self.levels[-1].nodes, self.num_ports
        groups: NDArray[np.int64] = np.broadcast_to(self.levels[level].group(node, port), shape)
        return groups

    def _ports(self, lost: NDArray[np.bool_]) -> Outage | None:
        """Ports that hang on one switch, or one rail."""
        port = np.flatnonzero(np.broadcast_to(lost, (self.levels[-1].nodes, self.num_ports)).reshape(-1))
        rows = np.concatenate([self.first[0] + port, self.first[1] + port])
        return Outage(rows=rows, share=1.0, num_switches=1) if len(rows) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReducingTree:
    """The same paths with the reduction engine of each group of switches on the way.

    Parameters
    ----------
    links : SwitchTree
        without them
    engines : tuple[int, ...]
        row of the first group's engine at each level
    """

    links: SwitchTree
    engines: tuple[int, ...]

    def __call__(
        self,
        source_node: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        destination_port: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Rows in order of travel; see :data:`~clustersim.topology.fabric.PortPath`."""
        links = self.links(source_node, source_port, destination_node, destination_port).T
        up, down = [links[0]], [links[-1]]
        turned = np.zeros(len(source_node), dtype=bool)
        for level, (tier, engine) in enumerate(zip(self.links.levels, self.engines, strict=True)):
            source, destination = tier.group(source_node, source_port), tier.group(destination_node, destination_port)
            apart = source != destination
            up.append(np.where(turned, -1, engine + source))
            down.append(np.where(apart, engine + destination, -1))
            turned |= ~apart
            if level < len(self.links.tiers):
                up.append(links[level + 1])
                down.append(links[-2 - level])
        return np.stack([*up, *reversed(down)], axis=1)
