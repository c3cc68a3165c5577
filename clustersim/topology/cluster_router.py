"""Routes of nodes on a fabric: tables for the inside of each kind of node, closed form for the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.topology.crossing import Crossing
from clustersim.topology.switch_tree import Outage

__all__ = ["ClusterRouter", "MixedRouter"]


@runtime_checkable
class _Switched(Protocol):
    """A path that knows its switches by name."""

    def outage(self, name: str, count: int) -> Outage | None: ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ClusterRouter:
    """Routes of equal nodes; also, by slots, of those of :class:`MixedRouter`.

    Parameters
    ----------
    num_gpus : int
        GPUs of a node
    base, stride : NDArray[int64], shape (rows of a node + 1,)
        row r of node i is ``base[r] + i · stride[r]`` in the topology; the last entry answers for the padding, -1
    between : NDArray[int64], shape (num_gpus, num_gpus, hops)
        inside a node
    crossing : Crossing, optional
        between nodes
    """

    num_gpus: int
    base: NDArray[np.int64]
    stride: NDArray[np.int64]
    between: NDArray[np.int64]
    crossing: Crossing | None

    def __call__(self, source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
        """See :data:`~clustersim.topology.topology.Router`."""
        source_node, a = np.divmod(source, self.num_gpus)
        destination_node, b = np.divmod(destination, self.num_gpus)
        return self.by_slot(source_node, a, destination_node, b)

    def by_slot(
        self,
        source_node: NDArray[np.int64],
        a: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        b: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Routes from slot ``a`` of one node to slot ``b`` of another or the same."""
        apart = source_node != destination_node
        if self.crossing is None or not apart.any():
            return _pack(self._place(source_node, self.between[a, b]), len(a))
        if apart.all():
            return _pack(self._cross(self.crossing, source_node, a, destination_node, b), len(a))
        near, far = np.flatnonzero(~apart), np.flatnonzero(apart)
        inside = self.by_slot(source_node[near], a[near], destination_node[near], b[near])
        across = self.by_slot(source_node[far], a[far], destination_node[far], b[far])
        rows = np.full((len(a), max(inside.shape[1], across.shape[1])), -1, dtype=np.int64)
        rows[near, : inside.shape[1]] = inside
        rows[far, : across.shape[1]] = across
        return rows

    def outage(self, name: str, count: int) -> Outage | None:
        """What is lost when ``count`` of the switches called ``name`` fail, by the topology's rows; None: no such."""
        path: object = self.crossing.path if self.crossing else None
        if self.crossing is None or not isinstance(path, _Switched):
            return None
        lost = path.outage(name, count)
        return None if lost is None else replace(lost, rows=lost.rows + self.crossing.first)

    def without(self, ports: NDArray[np.int64], links: NDArray[np.int64]) -> ClusterRouter:
        """The same after ports and links have failed; see :meth:`Crossing.without`."""
        if self.crossing is None:
            rule = "leaves no route: the machine has no network"
            raise BadInput([Fault(key="perturb.failed_links", value=links.tolist(), rule=rule)])
        return replace(self, crossing=self.crossing.without(ports, links))

    def _place(self, node: NDArray[np.int64], rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Hops by a node's own counting as hops of the topology."""
        return [self.base[hop] + node * self.stride[hop] for hop in rows.T]

    def _cross(
        self,
        crossing: Crossing,
        source_node: NDArray[np.int64],
        a: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        b: NDArray[np.int64],
    ) -> list[NDArray[np.int64]]:
        """The hops of pairs on different nodes."""
        hops, last = [], []
        if crossing.relay_rails:
            sender, receiver, port, arrival = crossing.relayed(source_node, a, destination_node, b)
            if (sender != a).any():
                hops = self._place(source_node, self.between[a, sender])
            if (receiver != b).any():
                last = self._place(destination_node, self.between[receiver, b])
            a, b = sender, receiver
        else:
            port = crossing.up(source_node, crossing.port_of[a])
            arrival = crossing.up(destination_node, crossing.port_of[b])
        leaves, enters = crossing.home[crossing.kind_of[a], port], crossing.home[crossing.kind_of[b], arrival]
        hops += self._place(source_node, crossing.outward[a, leaves])
        for wire in crossing.path(source_node, port, destination_node, arrival).T:
            hops.append(np.where(wire >= 0, wire + crossing.first, -1))
        return hops + self._place(destination_node, crossing.inward[enters, b]) + last


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MixedRouter:
    """Routes of nodes of several kinds.

    Parameters
    ----------
    node_of, slot_of : NDArray[int64], shape (num_devices,)
        node of each device, and its slot among those of all kinds
    ways : ClusterRouter
        by slots
    """

    node_of: NDArray[np.int64]
    slot_of: NDArray[np.int64]
    ways: ClusterRouter

    def __call__(self, source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
        """See :data:`~clustersim.topology.topology.Router`."""
        return self.ways.by_slot(
            self.node_of[source], self.slot_of[source], self.node_of[destination], self.slot_of[destination]
        )

    def outage(self, name: str, count: int) -> Outage | None:
        """See :meth:`ClusterRouter.outage`."""
        return self.ways.outage(name, count)

    def without(self, ports: NDArray[np.int64], links: NDArray[np.int64]) -> MixedRouter:
        """See :meth:`Crossing.without`."""
        return replace(self, ways=self.ways.without(ports, links))


def _pack(hops: list[NDArray[np.int64]], num_pairs: int) -> NDArray[np.int64]:
    """Hops as routes, shape (num_pairs, longest), with all padding at the end."""
    width = len(hops) + 1
    rows = np.full(num_pairs * width, -1, dtype=np.int64)
    start = np.arange(num_pairs, dtype=np.int64) * width
    free = start.copy()
    for hop in hops:
        rows[free] = hop  # padding does not move on, so the next hop overwrites it
        free += hop >= 0
    longest = int((free - start).max(initial=0))
    return rows.reshape(num_pairs, width)[:, :longest]
