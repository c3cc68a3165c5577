"""Equal nodes on a fabric: the topology of the regular families, in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.topology.fabric import Fabric, PortPath
from clustersim.topology.in_network import InNetwork
from clustersim.topology.node import Node
from clustersim.topology.resources import ResourceTable
from clustersim.topology.topology import LocalPath, Topology

__all__ = ["ClusterRouter", "Crossing", "connect"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Crossing:
    """How traffic leaves one node and enters another; rows of the node count from 0.

    Parameters
    ----------
    port_of : NDArray[int64], shape (num_gpus,)
        network port of each GPU
    outward, inward : NDArray[int64], shape (num_gpus, hops)
        between each GPU and its port, -1 where it needs no hop
    path : PortPath
        between ports, by the fabric's own rows
    first : int
        row of the fabric's first resource
    relay_rails : int
        see :class:`~clustersim.topology.fabric.Fabric`
    """

    port_of: NDArray[np.int64]
    outward: NDArray[np.int64]
    inward: NDArray[np.int64]
    path: PortPath
    first: int
    relay_rails: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ClusterRouter:
    """Routes of equal nodes: a table for the inside of one node, closed form for the rest.

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
        apart = source_node != destination_node
        if self.crossing is None or not apart.any():
            return _pack(self._place(source_node, self.between[a, b]), len(source))
        if apart.all():
            return _pack(self._cross(self.crossing, source_node, a, destination_node, b), len(source))
        near, far = np.flatnonzero(~apart), np.flatnonzero(apart)
        inside = self(source[near], destination[near])
        across = self(source[far], destination[far])
        rows = np.full((len(source), max(inside.shape[1], across.shape[1])), -1, dtype=np.int64)
        rows[near, : inside.shape[1]] = inside
        rows[far, : across.shape[1]] = across
        return rows

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
        port, arrival = crossing.port_of[a], crossing.port_of[b]
        hops = []
        apart = (port - arrival) % (crossing.relay_rails or 1) != 0
        if apart.any():
            sender = np.where(apart, b, a)
            hops += self._place(source_node, self.between[a, sender])
            a, port = sender, crossing.port_of[sender]
        hops += self._place(source_node, crossing.outward[a])
        for wire in crossing.path(source_node, port, destination_node, arrival).T:
            hops.append(np.where(wire >= 0, wire + crossing.first, -1))
        return hops + self._place(destination_node, crossing.inward[b])


def connect(
    node: Node,
    fabric: Fabric | None,
    *,
    name: str,
    num_nodes: int = 1,
    notes: tuple[str, ...] = (),
    sources: Mapping[str, str] | None = None,
) -> Topology:
    """Repeat ``node`` and join the copies.

    Parameters
    ----------
    node : Node
        each of the nodes
    fabric : Fabric, optional
        laid out for ``num_nodes`` nodes of that many GPUs; None for a machine on its own
    name : str
        of the topology
    num_nodes : int
        copies
    notes : tuple[str, ...]
        added to those of node and fabric
    sources : Mapping[str, str], optional
        the parts' sources by dotted name

    Raises
    ------
    BadInput
        when several nodes have no fabric between them
    """
    if num_nodes < 1:
        raise BadInput([Fault(key="nodes", value=num_nodes, rule="must be at least 1", nearest=1)])
    if fabric is None and num_nodes > 1:
        raise BadInput([Fault(key="nodes", value=num_nodes, rule="needs a fabric between the nodes", nearest=1)])
    blocks = [replace(b, shape=(num_nodes, *b.shape), label=f"node{{}}/{b.label}") for b in node.blocks]
    counts = np.array([b.count for b in node.blocks], dtype=np.int64)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    stride = np.repeat(counts, counts)
    # A resource of node i stands at base + i * stride; the last entry answers for the padding, -1.
    base = np.append(np.repeat(first * num_nodes - first, counts) + np.arange(counts.sum()), -1)
    stride = np.append(stride, 0)
    node_of, gpu = np.divmod(np.arange(num_nodes * node.num_gpus, dtype=np.int64), node.num_gpus)
    router = ClusterRouter(
        num_gpus=node.num_gpus,
        base=base,
        stride=stride,
        between=node.between,
        crossing=None if fabric is None else _crossing(node, fabric, first=int(counts.sum()) * num_nodes),
    )
    in_network = None
    if fabric is not None and fabric.reducing is not None and router.crossing is not None:
        reducing = replace(router.crossing, path=fabric.reducing)
        in_network = InNetwork(router=replace(router, crossing=reducing), slots=fabric.reduction_slots)
    return Topology(
        name=name,
        gpus=node.gpus,
        gpu_of=node.gpu_of[gpu],
        node_of=node_of,
        cpus=node.cpus,
        cpu_of=node.cpu_of[gpu],
        resources=ResourceTable(blocks + list(fabric.blocks if fabric else ())),
        router=router,
        local={
            kind: LocalPath(
                rows=base[path.rows[gpu]] + node_of[:, None] * stride[path.rows[gpu]],
                per_byte=path.per_byte,
                latency=path.latency,
            )
            for kind, path in node.local.items()
        },
        tier_bytes=node.tier_bytes,
        multicast=np.full(len(node_of), node.multicast),
        in_network=in_network,
        notes=node.notes + (fabric.notes if fabric else ()) + notes,
        sources=sources or {},
    )


def _crossing(node: Node, fabric: Fabric, *, first: int) -> Crossing:
    """The fabric's ports as seen from the node: each hangs beside the first GPU that uses it."""
    port_of = np.array(fabric.ports.of_gpu, dtype=np.int64)
    if len(port_of) != node.num_gpus:
        rule = f"must name a port for each of the node's {node.num_gpus} GPUs"
        raise BadInput([Fault(key="fabric.nic_of", value=fabric.ports.of_gpu, rule=rule, nearest=node.num_gpus)])
    gpu = np.arange(node.num_gpus)
    home = np.array([int(np.argmax(port_of == port)) for port in port_of])
    return Crossing(
        port_of=port_of,
        outward=node.outward[gpu, home],
        inward=node.inward[home, gpu],
        path=fabric.path,
        first=first,
        relay_rails=fabric.relay_rails,
    )


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
