"""How traffic leaves one node and enters another: which ports it takes, and which when some have failed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.topology.fabric import PortPath

__all__ = ["Crossing"]


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
