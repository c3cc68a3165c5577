"""Irregular topologies: a graph of one's own, with a route for every pair of devices."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.topology.check import require_sound
from clustersim.topology.graph_elements import count_faults, read_edge, vertex_faults
from clustersim.topology.host_rows import NANOSECONDS
from clustersim.topology.resources import Block, ResourceTable
from clustersim.topology.shortest import shortest_routes
from clustersim.topology.topology import LocalPath, Topology

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["TableRouter", "from_networkx"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TableRouter:
    """A route for every pair of devices.

    Parameters
    ----------
    table : NDArray[int64], shape (num_devices, num_devices, hops)
        padded with -1
    """

    table: NDArray[np.int64]

    def __call__(self, source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
        """See :data:`~clustersim.topology.topology.Router`."""
        rows: NDArray[np.int64] = self.table[source, destination]
        return rows[:, : int((rows >= 0).sum(axis=1).max(initial=0))]


def from_networkx(
    graph: nx.Graph[Any], *, gpu: GPU, cpu: CPU, host_link: Link | None = None, name: str = "graph"
) -> Topology:
    """A topology from a graph of one's own.

    Routes take the least latency, then the fewest hops, then the edges that come first in the graph; in an undirected
    graph the way back is the way there. They may pass through GPUs.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        Each vertex has a ``role``, ``"gpu"`` or ``"switch"``, and may have a ``radix``: its ports, of which each link
        takes one. A GPU may have a ``node``: anything that is equal among the GPUs of one node; without it they are
        all on one. Each edge has a ``bandwidth`` of one direction ([B/s], or a text with a unit) and a ``latency``
        ([s], likewise); it may have ``num_links``, parallel links that have this bandwidth together, a ``kind`` and, in
        a directed graph, a ``name``. An undirected edge is a link each way.
    gpu : GPU
        card of every device; :meth:`~clustersim.topology.topology.Topology.with_devices` makes a mixed cluster
    cpu : CPU
        the one socket of every node
    host_link : Link, optional
        between each GPU and its socket; without it there is no ``h2d`` and no ``d2h``
    name : str
        of the topology

    Returns
    -------
    Topology
        devices are the GPUs in the order of the graph, node by node

    Raises
    ------
    BadInput
        for every missing, unknown or illegal attribute; for a vertex with more links than ports; for a graph with
        parallel edges, without GPUs or with more than 512; for GPUs that cannot reach each other
    """
    if graph.is_multigraph():
        rule = "must have one edge for each pair: parallel links are its num_links"
        raise BadInput([Fault(key="graph", value=type(graph).__name__, rule=rule, nearest="Graph or DiGraph")])
    devices = [vertex for vertex, given in graph.nodes(data=True) if given.get("role") == "gpu"]
    faults = [*vertex_faults(graph), *count_faults(len(devices))]
    blocks: list[Block] = []
    ends: list[tuple[Any, Any]] = []
    for tail, head, given in graph.edges(data=True):
        block, wrong = read_edge(f"{tail}->{head}", given, directed=graph.is_directed())
        faults += wrong
        if tail == head:
            faults.append(Fault(key=block.label, value=tail, rule="must join two vertices: no route crosses a loop"))
        blocks.append(block)
        ends.append((tail, head))
        if not graph.is_directed():
            blocks.append(read_edge(f"{head}->{tail}", given, directed=False)[0])
            ends.append((head, tail))
    repeated = [label for label, count in Counter(block.label for block in blocks).items() if count > 1]
    faults += [Fault(key="graph", value=label, rule="is the name of two links") for label in repeated]
    if faults:
        raise BadInput(faults)
    numbers: dict[Any, int] = {}
    node = np.array([numbers.setdefault(graph.nodes[v].get("node"), len(numbers)) for v in devices], dtype=np.int64)
    order = np.argsort(node, kind="stable")
    index = {vertex: i for i, vertex in enumerate(graph.nodes)}
    links = ResourceTable(blocks)
    table = shortest_routes(
        np.array([index[tail] for tail, _ in ends], dtype=np.int64),
        np.array([index[head] for _, head in ends], dtype=np.int64),
        links.latency_ns,
        np.array([index[devices[i]] for i in order], dtype=np.int64),
        num_vertices=len(index),
        mirrored=not graph.is_directed(),
    )
    own, local = _own_paths(gpu, cpu, host_link, node[order], first=len(links))
    made = Topology(
        name=name,
        gpus=(gpu,),
        gpu_of=np.zeros(len(devices), dtype=np.int64),
        node_of=node[order],
        cpus=(cpu,),
        cpu_of=np.zeros(len(devices), dtype=np.int64),
        resources=ResourceTable(blocks + own),
        router=TableRouter(table=table),
        local=local,
        tier_bytes={"host": cpu.memory_bytes},
    )
    return require_sound(made)


def _own_paths(
    gpu: GPU, cpu: CPU, host_link: Link | None, node: NDArray[np.int64], *, first: int
) -> tuple[list[Block], dict[str, LocalPath]]:
    """Memories and host links beside the graph, and the paths over them; ``first`` is their first row."""
    n, num_nodes = len(node), int(node.max()) + 1
    dram = first + n + node
    blocks = [
        Block(kind="hbm", shape=(n,), capacity=gpu.memory_bandwidth, latency=0.0, label="gpu{}/hbm"),
        Block(
            kind="dram",
            shape=(num_nodes,),
            capacity=cpu.streaming_bandwidth,
            latency=0.0,
            label="node{}/dram",
        ),
        Block(
            kind="cores",
            shape=(num_nodes,),
            capacity=NANOSECONDS * cpu.num_cores,
            latency=0.0,
            label="node{}/cores",
        ),
    ]
    device = np.arange(n, dtype=np.int64)
    local = {
        "hbm": LocalPath(rows=(first + device)[:, None], per_byte=np.ones(1)),
        "dram": LocalPath(rows=dram[:, None], per_byte=np.ones(1)),
        "cores": LocalPath(rows=(dram + num_nodes)[:, None], per_byte=np.ones(1)),
    }
    if host_link is not None:
        up = first + n + 2 * num_nodes + device
        blocks += [
            Block(
                kind="pcie",
                shape=(n,),
                capacity=rate,
                latency=host_link.latency,
                label=f"gpu{{}}/pcie.{way}",
                uneven=host_link.return_bandwidth != host_link.payload_bandwidth,
            )
            for way, rate in (("up", host_link.return_bandwidth), ("down", host_link.payload_bandwidth))
        ]
        cost = host_link.copy_latency
        local["d2h"] = LocalPath(rows=np.stack([up, dram], axis=1), per_byte=np.ones(2), latency=cost)
        local["h2d"] = LocalPath(rows=np.stack([dram, up + n], axis=1), per_byte=np.ones(2), latency=cost)
    for name in [name for name in ("dram", "h2d", "d2h") if name in local]:
        local[f"{name}.spread"] = local[name]  # one socket a node
    return blocks, local
