"""How a group's members line up over nodes: the rings and chains inside, and the lanes between nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.traffic import GroupShape

__all__ = ["Edges", "Layout"]

Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""(source, destination, uses), each of shape (num_edges,): positions in the group, and what runs along the edge."""


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
    rings : NDArray[int64], shape (num_rings, n)
        for each ring inside the nodes and each member the next one, by position in the group
    """

    order: NDArray[np.int64]
    count: NDArray[np.int64]
    rings: NDArray[np.int64]

    @classmethod
    def of(cls, shape: GroupShape) -> Layout:
        """Layout of ``shape``; members of one node need not be neighbours in the group.

        A shape without rings has one: each member to the next of its node in group order, the last to the first.
        """
        order = np.argsort(shape.node, kind="stable")
        count = np.unique(shape.node, return_counts=True)[1]
        if shape.rings is not None:
            return cls(order=order, count=count, rings=shape.rings)
        following = np.arange(1, len(order) + 1)
        last = np.cumsum(count) - 1
        following[last] = last - count + 1
        rings = np.empty((1, len(order)), dtype=np.int64)
        rings[0, order] = order[following]
        return cls(order=order, count=count, rings=rings)

    @property
    def num_nodes(self) -> int:
        """Nodes that hold a member."""
        return len(self.count)

    @property
    def num_rings(self) -> int:
        """Rings inside the nodes, among which a collective divides its bytes."""
        return len(self.rings)

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

    def cycle(self) -> Edges:
        """On every node, the edges of all rings; uses are rings. Nodes of one member have no edge."""
        source = np.tile(self.order, self.num_rings)
        destination = self.rings[:, self.order].reshape(-1)
        keep = source != destination
        return self._gathered(source[keep], destination[keep], np.ones(int(keep.sum()), dtype=np.int64))

    def starts(self) -> NDArray[np.int64]:
        """How many lanes begin at each member: one at each of a node's first, shape (n,)."""
        return (self._place() < self.num_lanes).astype(np.int64)

    def paths(self, starts: NDArray[np.int64]) -> Edges:
        """On every node, one path a ring and lane through all members; uses are paths.

        A path that starts at member c follows its ring up to the member before c: it uses each edge of the ring but
        the one that closes it into member c.

        Parameters
        ----------
        starts : NDArray[int64], shape (n,)
            lanes that begin at each member, as many on each node as there are lanes
        """
        source, destination, uses = self.cycle()
        uses = uses * (self.num_lanes - starts[destination])
        used = uses > 0
        return source[used], destination[used], uses[used]

    def crossings(self) -> Edges:
        """From every node to the next, where paths from :meth:`starts` go on; uses are paths.

        A path that ends at a lane's member enters the next node at the same lane: it stays on its rail. The others,
        which end at a member beyond the lanes, take the lanes that are left, in order.
        """
        enter = self.lanes()
        following = np.roll(enter, -1, axis=0)
        if enter.size == len(self.order):  # equal nodes: every member is on a lane
            return enter.reshape(-1), following.reshape(-1), np.full(enter.size, self.num_rings, dtype=np.int64)
        before = np.empty_like(self.rings)
        np.put_along_axis(before, self.rings, np.arange(len(self.order))[None], axis=1)
        place = self._place()
        leave = before[:, enter]
        leave = np.take_along_axis(leave, np.argsort(place[leave], axis=2), axis=2)
        left = np.ones((*leave.shape[:2], int(self.count.max())), dtype=bool)
        np.put_along_axis(left, place[leave], False, axis=2)
        lane = np.argsort(left[:, :, : self.num_lanes], axis=2, kind="stable")
        arrive = np.take_along_axis(np.broadcast_to(following, lane.shape), lane, axis=2)
        return self._gathered(leave.reshape(-1), arrive.reshape(-1), np.ones(leave.size, dtype=np.int64))

    def _place(self) -> NDArray[np.int64]:
        """Which member of its node each member is, shape (n,)."""
        place = np.empty(len(self.order), dtype=np.int64)
        place[self.order] = np.arange(len(self.order)) - np.repeat(self.first, self.count)
        return place

    def _gathered(self, source: NDArray[np.int64], destination: NDArray[np.int64], uses: NDArray[np.int64]) -> Edges:
        """One edge for each pair, with the uses of all rings."""
        if self.num_rings == 1:
            return source, destination, uses
        n = len(self.order)
        pair, inverse = np.unique(source * n + destination, return_inverse=True)
        total = np.zeros(len(pair), dtype=np.int64)
        np.add.at(total, inverse.reshape(-1), uses)
        return pair // n, pair % n, total
