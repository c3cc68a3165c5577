"""Groups of switches with links between each two groups: the global level of dragonflies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clustersim.faults import Fault

__all__ = ["Groups"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """How many groups there are and how many links join each two.

    Parameters
    ----------
    num_nodes : int
        nodes to hold
    nodes_per_group : int
        nodes of a full group
    global_ports : int
        ports of a group that lead to other groups
    groups : int, optional
        groups that the machine is wired for; those that the nodes fill when left out
    group_links : int, optional
        links between each two groups; as many as the ports allow when left out
    """

    num_nodes: int
    nodes_per_group: int
    global_ports: int
    groups: int | None = None
    group_links: int | None = None

    @property
    def used(self) -> int:
        """Groups that have nodes."""
        return -(-self.num_nodes // self.nodes_per_group)

    @property
    def count(self) -> int:
        """Groups that the machine is wired for."""
        return self.used if self.groups is None else self.groups

    @property
    def links(self) -> int:
        """Links between each two groups; 0 for a group on its own."""
        if self.count == 1:
            return 0
        return self.global_ports // (self.count - 1) if self.group_links is None else self.group_links

    def faults(self) -> Iterator[Fault]:
        """What does not fit."""
        most = self.global_ports + 1
        if self.used > most:
            rule = f"must be at most {most * self.nodes_per_group}: {most} groups of {self.nodes_per_group}"
            yield Fault(key="nodes", value=self.num_nodes, rule=rule, nearest=most * self.nodes_per_group)
        elif not self.used <= self.count <= most:
            rule = f"must be from {self.used}, for {self.num_nodes} nodes, to {most}, a link to each other group"
            nearest = min(max(self.count, self.used), most)
            yield Fault(key="fabric.groups", value=self.groups, rule=rule, nearest=nearest)
        elif self.group_links is not None and self.count > 1:
            room = self.global_ports // (self.count - 1)
            if not 1 <= self.group_links <= room:
                rule = f"must be from 1 to {room}: {self.global_ports} global ports for {self.count - 1} other groups"
                nearest = min(max(self.group_links, 1), room)
                yield Fault(key="fabric.group_links", value=self.group_links, rule=rule, nearest=nearest)
