"""How a group's members line up over nodes: the order that rings and chains follow, and the lanes between nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.traffic import GroupShape

__all__ = ["Layout"]

Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Layout:
    """A group, node by node, as arrays.

    Nodes stand in the order of their first members, the members of a node in group order. *Lane* c is the c-th
    member of every node: the path that one channel takes between nodes, through that member's NIC. There are as many
    lanes as the smallest node has members, because a channel passes through every node.

    Parameters
    ----------
    order : NDArray[int64], shape (n,)
        positions in the group, node by node
    count : NDArray[int64], shape (num_nodes,)
        members on each node
    """

    order: NDArray[np.int64]
    count: NDArray[np.int64]

    @classmethod
    def of(cls, shape: GroupShape) -> Layout:
        """Layout of ``shape``; members of one node need not be neighbours in the group."""
        count = np.unique(shape.node, return_counts=True)[1]
        return cls(order=np.argsort(shape.node, kind="stable"), count=count)

    @property
    def num_nodes(self) -> int:
        """Nodes that hold a member."""
        return len(self.count)

    @property
    def num_lanes(self) -> int:
        """Members that every node has at least."""
        return int(self.count.min())

    @property
    def first(self) -> NDArray[np.int64]:
        """Index into ``order`` of each node's first member, shape (num_nodes,)."""
        first: NDArray[np.int64] = np.cumsum(self.count) - self.count
        return first

    def lanes(self) -> NDArray[np.int64]:
        """Positions of the members on each lane, shape (num_nodes, num_lanes)."""
        lanes: NDArray[np.int64] = self.order[self.first[:, None] + np.arange(self.num_lanes)]
        return lanes

    def last(self) -> NDArray[np.int64]:
        """Position of each node's last member, shape (num_nodes,)."""
        last: NDArray[np.int64] = self.order[self.first + self.count - 1]
        return last

    def cycle(self) -> Edges:
        """On every node, each member to the next and the last to the first.

        Returns
        -------
        source, destination, lane : NDArray[int64], shape (num_edges,)
            positions in the group, and which member of its node the destination is; nodes of one member have no edge
        """
        index = np.arange(len(self.order))
        lane = index - np.repeat(self.first, self.count)
        at_end = lane == np.repeat(self.count, self.count) - 1
        following = np.where(at_end, index - lane, index + 1)
        keep = following != index
        return self.order[keep], self.order[following[keep]], lane[following[keep]]

    def paths(self) -> Edges:
        """On every node, one path a lane through all members: c, c+1, …, c-1, around the cycle.

        Path c uses each edge of the cycle but the one that closes it into member c.

        Returns
        -------
        source, destination, uses : NDArray[int64], shape (num_edges,)
            positions in the group, and how many of the paths use the edge
        """
        source, destination, lane = self.cycle()
        uses = self.num_lanes - (lane < self.num_lanes)
        used = uses > 0
        return source[used], destination[used], uses[used]
