"""Irregular topologies: a graph of one's own, with a route for every pair of devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.topology.check import require_sound
from clustersim.topology.host_rows import NANOSECONDS
from clustersim.topology.resources import MOST_CAPACITY, Block, ResourceTable
from clustersim.topology.shortest import shortest_routes
from clustersim.topology.topology import LocalPath, Topology
from clustersim.units import UnitError, parse

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MAX_DEVICES", "TableRouter", "from_networkx"]

MAX_DEVICES = 512
"""Devices of a topology that keeps a route for every pair: the table has n · n · hops entries."""

_ROLES = ("gpu", "switch")
_VERTEX = ("role", "node", "radix")
_EDGE = ("bandwidth", "latency", "num_links", "kind", "name")


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
        all on one. Each edge has a ``bandwidth`` of one direction ([B/s], or
        a text with a unit) and a ``latency`` ([s], likewise); it may have ``num_links``, parallel links that have this
        bandwidth together, a ``kind`` and, in a directed graph, a ``name``. An undirected edge is a link each way.
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
    faults = [*_vertex_faults(graph), *_count_faults(len(devices))]
    blocks: list[Block] = []
    ends: list[tuple[Any, Any]] = []
    for tail, head, given in graph.edges(data=True):
        block, wrong = _read_edge(f"{tail}->{head}", given, directed=graph.is_directed())
        faults += wrong
        if tail == head:
            faults.append(Fault(key=block.label, value=tail, rule="must join two vertices: no route crosses a loop"))
        blocks.append(block)
        ends.append((tail, head))
        if not graph.is_directed():
            blocks.append(_read_edge(f"{head}->{tail}", given, directed=False)[0])
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


def _vertex_faults(graph: nx.Graph[Any]) -> Iterator[Fault]:
    for vertex, given in graph.nodes(data=True):
        role = given.get("role")
        if role not in _ROLES:
            rule = f"must be one of {', '.join(_ROLES)}"
            yield Fault(key=f"{vertex}.role", value=role, rule=rule, nearest=nearest_name(str(role), _ROLES))
        yield from _unknown(str(vertex), given, _VERTEX)
        if "radix" in given:
            yield from _degree_faults(graph, vertex, given["radix"])


def _degree_faults(graph: nx.Graph[Any], vertex: Any, radix: object) -> Iterator[Fault]:
    """A vertex with more links than ports; a link is one port for both directions."""
    if not isinstance(radix, int) or isinstance(radix, bool) or radix < 1:
        rule = "must be a whole number of ports, at least 1"
        yield Fault(key=f"{vertex}.radix", value=radix, rule=rule, nearest=1)
        return
    links: dict[Any, int] = {}
    for tail, head, given in graph.edges(data=True):
        if vertex in (tail, head):
            other, count = (head if tail == vertex else tail), given.get("num_links", 1)
            links[other] = max(links.get(other, 0), count if isinstance(count, int) else 1)
    used = sum(links.values())
    if used > radix:
        rule = f"ports are fewer than its links, {used}"
        yield Fault(key=f"{vertex}.radix", value=radix, rule=rule, nearest=used)


def _count_faults(num_devices: int) -> Iterator[Fault]:
    if not 1 <= num_devices <= MAX_DEVICES:
        rule = f"GPUs: a graph keeps a route for every pair and may have 1 to {MAX_DEVICES} of them"
        yield Fault(key="graph", value=num_devices, rule=rule, nearest=min(max(num_devices, 1), MAX_DEVICES))


def _unknown(owner: str, given: Mapping[Any, Any], known: tuple[str, ...]) -> Iterator[Fault]:
    for key in given:
        if key not in known:
            rule = f"is not one of {', '.join(known)}"
            yield Fault(key=owner, value=key, rule=rule, nearest=nearest_name(str(key), known))


def _read_edge(way: str, given: Mapping[str, Any], *, directed: bool) -> tuple[Block, list[Fault]]:
    """One direction of an edge, and what is wrong with its attributes."""
    faults = list(_unknown(way, given, _EDGE if directed else _EDGE[:-1]))
    quantity = {"bandwidth": 1.0, "latency": 0.0}
    for key, unit in (("bandwidth", "B/s"), ("latency", "s")):
        try:
            quantity[key] = parse(given[key], unit)
        except KeyError:
            faults.append(Fault(key=f"{way}.{key}", value=None, rule=f"must be given [{unit}]"))
        except UnitError as error:
            faults.append(Fault(key=f"{way}.{key}", value=error.value, rule=error.rule, nearest=error.nearest))
    if not 1 <= quantity["bandwidth"] <= MOST_CAPACITY:
        rule = f"must be from 1 to {MOST_CAPACITY:g} B/s"
        nearest = MOST_CAPACITY if quantity["bandwidth"] > 1 else 1
        faults.append(Fault(key=f"{way}.bandwidth", value=given["bandwidth"], rule=rule, nearest=nearest))
        quantity["bandwidth"] = 1.0
    num_links = given.get("num_links", 1)
    if not isinstance(num_links, int) or num_links < 1:
        rule = "must be a whole number of links, at least 1"
        faults.append(Fault(key=f"{way}.num_links", value=num_links, rule=rule, nearest=1))
    label = str(given.get("name", way))
    if "{}" in label:
        faults.append(Fault(key=way, value=label, rule="must be a name without {}"))
    kind = str(given.get("kind", "link"))
    block = Block(
        kind=kind,
        shape=(),
        capacity=quantity["bandwidth"],
        latency=quantity["latency"],
        label=label,
        num_links=num_links,
    )
    return block, faults


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
