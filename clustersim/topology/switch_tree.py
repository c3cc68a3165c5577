"""Paths through a tree of switches whose parallel links are one resource: a pair climbs until one group holds both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ReducingTree", "SwitchTree", "Tier"]


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


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchTree:
    """Paths between ports; ideal ECMP.

    Parameters
    ----------
    num_ports : int
        ports of a node
    tiers : tuple[Tier, ...]
        below the top, from the leaves up
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
            source, destination = tier.group(source_node, source_port), tier.group(destination_node, destination_port)
            apart = source != destination
            rows[:, level] = np.where(apart, self.first[2 * level] + source, -1)
            rows[:, -1 - level] = np.where(apart, self.first[2 * level + 1] + destination, -1)
        return rows


@dataclass(frozen=True, kw_only=True, slots=True)
class ReducingTree:
    """The same paths with the reduction engine of each group of switches on the way.

    Parameters
    ----------
    links : SwitchTree
        without them
    levels : tuple[Tier, ...]
        the tiers and the top
    engines : tuple[int, ...]
        row of the first group's engine at each level
    """

    links: SwitchTree
    levels: tuple[Tier, ...]
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
        for level, (tier, engine) in enumerate(zip(self.levels, self.engines, strict=True)):
            source, destination = tier.group(source_node, source_port), tier.group(destination_node, destination_port)
            apart = source != destination
            up.append(np.where(turned, -1, engine + source))
            down.append(np.where(apart, engine + destination, -1))
            turned |= ~apart
            if level < len(self.links.tiers):
                up.append(links[level + 1])
                down.append(links[-2 - level])
        return np.stack([*up, *reversed(down)], axis=1)
