"""Nodes on a fabric: the topology of the regular families, in closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.topology.cluster_router import ClusterRouter, MixedRouter
from clustersim.topology.crossing import Crossing
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.in_network import InNetwork
from clustersim.topology.mixed import common_paths, common_tiers, distinct, stacked
from clustersim.topology.node import Node
from clustersim.topology.node_paths import NodePaths
from clustersim.topology.resources import Block, ResourceTable
from clustersim.topology.topology import Topology

__all__ = ["ClusterRouter", "NodeKind", "connect", "connect_mixed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeKind:
    """Equal nodes of a cluster.

    Parameters
    ----------
    node : Node
        each of them
    count : int
        how many
    ports : Ports, optional
        of each; None where there is no fabric
    """

    node: Node
    count: int
    ports: Ports | None = None


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
    kind = NodeKind(node=node, count=num_nodes, ports=fabric.ports if fabric else None)
    return connect_mixed([kind], fabric, name=name, notes=notes, sources=sources)


def connect_mixed(
    kinds: Sequence[NodeKind],
    fabric: Fabric | None,
    *,
    name: str,
    notes: tuple[str, ...] = (),
    sources: Mapping[str, str] | None = None,
) -> Topology:
    """Join nodes of several kinds, those of the first kind first.

    Parameters
    ----------
    kinds : Sequence[NodeKind]
        at least one
    fabric : Fabric, optional
        laid out for all nodes together, with the fastest NIC and the most ports and links of any kind
    name, notes, sources
        as in :func:`connect`

    Raises
    ------
    BadInput
        when several nodes have no fabric between them, or ports do not fit GPUs
    """
    num_nodes = sum(kind.count for kind in kinds)
    if min(kind.count for kind in kinds) < 1:
        fewest = min(kind.count for kind in kinds)
        raise BadInput([Fault(key="nodes", value=fewest, rule="must be at least 1", nearest=1)])
    if fabric is None and num_nodes > 1:
        raise BadInput([Fault(key="nodes", value=num_nodes, rule="needs a fabric between the nodes", nearest=1)])
    nodes = [kind.node for kind in kinds]
    node_blocks, base, stride = _rows(kinds)
    first_slot = np.cumsum([0] + [node.num_gpus for node in nodes])
    counts = [kind.count for kind in kinds]
    kind_of_node = np.repeat(np.arange(len(kinds)), counts)
    gpus = np.diff(first_slot)[kind_of_node]
    node_of = np.repeat(np.arange(num_nodes, dtype=np.int64), gpus)
    start = np.cumsum(gpus) - gpus
    slot_of = np.arange(len(node_of), dtype=np.int64) - start[node_of] + first_slot[kind_of_node[node_of]]
    num_rows = [sum(block.count for block in node.blocks) for node in nodes]
    ways = ClusterRouter(
        num_gpus=int(first_slot[-1]),
        base=base,
        stride=stride,
        between=stacked([node.between for node in nodes], num_rows),
        crossing=_crossing(kinds, fabric, num_rows, first=sum(b.count for b in node_blocks)) if fabric else None,
    )
    router = ways if len(kinds) == 1 else MixedRouter(node_of=node_of, slot_of=slot_of, ways=ways)
    in_network = None
    if fabric is not None and fabric.reducing is not None and ways.crossing is not None:
        reducing = replace(ways, crossing=replace(ways.crossing, path=fabric.reducing))
        by_device = reducing if isinstance(router, ClusterRouter) else replace(router, ways=reducing)
        in_network = InNetwork(router=by_device, slots=fabric.reduction_slots)
    cards, gpu_of = distinct([(node.gpus, node.gpu_of) for node in nodes])
    sockets, cpu_of = distinct([(node.cpus, node.cpu_of) for node in nodes])
    paths, differing = common_paths([node.local for node in nodes], num_rows)
    tiers, uneven = common_tiers([node.tier_bytes for node in nodes])
    own = tuple(dict.fromkeys(note for node in nodes for note in node.notes))
    return Topology(
        name=name,
        gpus=cards,
        gpu_of=gpu_of[slot_of],
        node_of=node_of,
        cpus=sockets,
        cpu_of=cpu_of[slot_of],
        resources=ResourceTable([*node_blocks, *(_own_ports(kinds, fabric) if fabric else ())]),
        router=router,
        local=NodePaths(paths, slot_of=slot_of, node_of=node_of, base=base, stride=stride),
        tier_bytes=tiers,
        multicast=np.repeat([node.multicast for node in nodes], counts)[node_of],
        in_network=in_network,
        notes=own + (fabric.notes if fabric else ()) + differing + uneven + notes,
        sources=sources or {},
    )


def _rows(kinds: Sequence[NodeKind]) -> tuple[list[Block], NDArray[np.int64], NDArray[np.int64]]:
    """Blocks of all nodes; and ``base``, ``stride`` by the rows of one node of each kind, counted through."""
    blocks: list[Block] = []
    bases, strides = [], []
    row = node = 0
    for kind in kinds:
        own = kind.node.blocks
        blocks += [replace(b, shape=(kind.count, *b.shape), label=f"node{{}}/{b.label}", start=node) for b in own]
        counts = np.array([b.count for b in own], dtype=np.int64)
        first = np.concatenate(([0], np.cumsum(counts)[:-1]))
        stride = np.repeat(counts, counts)
        # Resource r of node i stands at base + i * stride.
        bases.append(row + np.repeat(first * (kind.count - 1), counts) + np.arange(counts.sum()) - node * stride)
        strides.append(stride)
        row += int(counts.sum()) * kind.count
        node += kind.count
    # The last entry answers for the padding, -1.
    return blocks, np.concatenate([*bases, [-1]]), np.concatenate([*strides, [0]])


def _crossing(kinds: Sequence[NodeKind], fabric: Fabric, num_rows: list[int], *, first: int) -> Crossing:
    """The fabric's ports as seen from the nodes: each hangs beside the first GPU that uses it."""
    num_ports = fabric.ports.count
    port_of, home, first_slot = [], np.full((len(kinds), num_ports), -1, dtype=np.int64), 0
    for k, kind in enumerate(kinds):
        of_gpu = np.array((kind.ports or fabric.ports).of_gpu, dtype=np.int64)
        if len(of_gpu) != kind.node.num_gpus:
            rule = f"must name a port for each of the node's {kind.node.num_gpus} GPUs"
            value = (kind.ports or fabric.ports).of_gpu
            raise BadInput([Fault(key="fabric.nic_of", value=value, rule=rule, nearest=kind.node.num_gpus)])
        port_of.append(of_gpu)
        ports, slots = np.unique(of_gpu, return_index=True)
        home[k, ports] = first_slot + slots
        first_slot += kind.node.num_gpus
    kind_of = np.repeat(np.arange(len(kinds)), [kind.node.num_gpus for kind in kinds])
    lacking = np.repeat(home < 0, [kind.count for kind in kinds], axis=0)
    return Crossing(
        num_nodes=len(lacking),
        kind_of=kind_of,
        port_of=np.concatenate(port_of),
        home=home,
        outward=stacked([kind.node.outward for kind in kinds], num_rows),
        inward=stacked([kind.node.inward for kind in kinds], num_rows),
        path=fabric.path,
        first=first,
        relay_rails=fabric.relay_rails,
        down=lacking if lacking.any() else None,
    )


def _own_ports(kinds: Sequence[NodeKind], fabric: Fabric) -> list[Block]:
    """The fabric's blocks, those of the ports cut by kind of node: each has its own NICs."""
    num_nodes, widest = sum(kind.count for kind in kinds), fabric.ports
    blocks: list[Block] = []
    for block in fabric.blocks:
        if len(kinds) == 1 or block.kind != "nic" or block.shape != (num_nodes, widest.count):
            blocks.append(block)
            continue
        start = 0
        for kind in kinds:
            ports = kind.ports or widest
            blocks.append(
                replace(
                    block,
                    shape=(kind.count, widest.count),
                    capacity=ports.nic.payload_bandwidth * ports.num_links,
                    latency=block.latency - widest.nic.latency + ports.nic.latency,
                    num_links=ports.num_links,
                    start=start,
                )
            )
            start += kind.count
    return blocks
