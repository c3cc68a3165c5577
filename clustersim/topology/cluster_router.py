"""Routes of nodes on a fabric: tables for the inside of each kind of node, closed form for the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.topology.fabric import PortPath
from clustersim.topology.switch_tree import Outage

__all__ = ["ClusterRouter", "Crossing", "MixedRouter"]


@runtime_checkable
class _Switched(Protocol):
    """A path that knows its switches by name."""

    def outage(self, name: str, count: int) -> Outage | None: ...


@runtime_checkable
class _Spare(Protocol):
    """A path that finds another way when links fail."""

    def without(self, rows: NDArray[np.int64]) -> PortPath: ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Crossing:
    """How traffic leaves one node and enters another; a slot is a GPU of one kind of node, all kinds counted through.

    Parameters
    ----------
    num_nodes : int
        nodes
    kind_of : NDArray[int64], shape (num_slots,)
        kind of node that each slot belongs to
    port_of : NDArray[int64], shape (num_slots,)
        network port of each
    home : NDArray[int64], shape (num_kinds, num_ports)
        slot beside which each port of a kind hangs, -1 where the kind has no such port
    outward, inward : NDArray[int64], shape (num_slots, num_slots, hops)
        from a slot to a port beside another, and from a port beside a slot to another, by the nodes' own rows
    path : PortPath
        between ports, by the fabric's own rows
    first : int
        row of the fabric's first resource
    relay_rails : int
        see :class:`~clustersim.topology.fabric.Fabric`
    down : NDArray[bool], shape (num_nodes, num_ports), optional
        ports that have failed or that a node lacks; None where every node has all of them
    """

    num_nodes: int
    kind_of: NDArray[np.int64]
    port_of: NDArray[np.int64]
    home: NDArray[np.int64]
    outward: NDArray[np.int64]
    inward: NDArray[np.int64]
    path: PortPath
    first: int
    relay_rails: int
    down: NDArray[np.bool_] | None = None

    def relayed(
        self,
        source_node: NDArray[np.int64],
        a: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        b: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Slots that send and receive for ``a`` and ``b``, and the ports that they use.

        Traffic to another rail is sent by the slot of that rail on its own node. Where a port of the rail is down at
        either end, both ends use the next one that is up at both.
        """
        port, arrival = self.port_of[a], self.port_of[b]
        apart = (port - arrival) % self.relay_rails != 0
        wanted = np.where(apart, arrival, port)
        sender = np.where(apart, np.where(self.kind_of[a] == self.kind_of[b], b, self.home[self.kind_of[a], wanted]), a)
        if self.down is None:
            return sender, b, wanted, arrival
        bad = self.down[source_node, wanted] | self.down[destination_node, arrival]
        common = wanted.copy()
        left = np.flatnonzero(bad)
        while len(left):  # ends within num_ports rounds: some port is up on every node
            common[left] = (common[left] + 1) % self.home.shape[1]
            left = left[self.down[source_node[left], common[left]] | self.down[destination_node[left], common[left]]]
        sender = np.where(bad, self._slot(a, common), sender)
        receiver = np.where(bad, self._slot(b, common), b)
        return sender, receiver, common, np.where(bad, common, arrival)

    def _slot(self, slot: NDArray[np.int64], port: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slot itself where that is its port, else the one beside which the port hangs."""
        return np.where(self.port_of[slot] == port, slot, self.home[self.kind_of[slot], port])

    def up(self, node: NDArray[np.int64], port: NDArray[np.int64]) -> NDArray[np.int64]:
        """Each port, or the next one that is up on its node."""
        if self.down is None:
            return port
        port = port.copy()
        left = np.flatnonzero(self.down[node, port])
        while len(left):
            port[left] = (port[left] + 1) % self.home.shape[1]
            left = left[self.down[node[left], port[left]]]
        return port

    def without(self, ports: NDArray[np.int64], links: NDArray[np.int64]) -> Crossing:
        """The same after ``ports`` (node, port), shape (n, 2), and ``links`` (the topology's rows) have failed.

        Raises
        ------
        BadInput
            when that leaves a node no port, or relayed traffic no port that all nodes have, or links no other way
        """
        key, faults = "perturb.failed_links", []
        path, down = self.path, self.down
        if len(ports):
            down = np.zeros((self.num_nodes, self.home.shape[1]), dtype=bool) if down is None else down.copy()
            down[ports[:, 0], ports[:, 1]] = True
            alone = np.flatnonzero(down.all(axis=1))
            if len(alone):
                rule = f"leaves no route: {len(alone)} nodes have no port left, node{alone[0]} the first"
                faults.append(Fault(key=key, value=f"node{alone[0]}", rule=rule))
            elif self.relay_rails and down.any(axis=0).all():
                rule = (
                    "leaves no route: each rail has failed on some node, and traffic keeps to rails that both ends have"
                )
                faults.append(Fault(key=key, value=f"node{int(ports[0, 0])}/nic{int(ports[0, 1])}", rule=rule))
        if len(links):
            way: object = path
            if isinstance(way, _Spare):
                path = way.without(links - self.first)
            else:
                faults.append(Fault(key=key, value=links.tolist(), rule="leaves no route: this fabric has one a pair"))
        if faults:
            raise BadInput(faults)
        return replace(self, path=path, down=down)


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
