"""A topology as a graph, to look at, to analyse or to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clustersim.topology.topology import Topology

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MAX_DEVICES", "to_networkx"]

MAX_DEVICES = 512
"""Devices up to which a graph is drawn: it takes the routes of all pairs."""


def to_networkx(topology: Topology) -> nx.DiGraph[Any]:
    """The links that routes cross, as a graph that :meth:`Topology.from_networkx` reads.

    A topology knows routes, not switches: two links meet in one vertex when some route passes from one to the other.

    Parameters
    ----------
    topology : Topology
        at most 512 devices

    Returns
    -------
    networkx.DiGraph
        ``gpu0`` … by device number, then the junctions, ``switch0`` …

    Raises
    ------
    ValueError
        when there are more devices, or two links join the same two vertices
    """
    import networkx as nx

    n, num_rows = topology.num_devices, len(topology.resources)
    if n > MAX_DEVICES:
        raise ValueError(f"{topology.name}: {n} devices; a graph is drawn of at most {MAX_DEVICES}")
    # Points to be joined into vertices: the start 2r and the end 2r + 1 of each resource, then the devices.
    pairs = ~np.eye(n, dtype=bool)
    source, destination = np.nonzero(pairs)
    rows = topology.route(source, destination)
    length = (rows >= 0).sum(axis=1)
    reached = np.flatnonzero(length)
    last = rows[reached, length[reached] - 1]
    inner = np.argwhere(rows[:, 1:] >= 0)
    joints = np.concatenate(
        [
            np.stack([2 * num_rows + source[reached], 2 * rows[reached, 0]], axis=1),
            np.stack([2 * num_rows + destination[reached], 2 * last + 1], axis=1),
            np.stack([2 * rows[inner[:, 0], inner[:, 1]] + 1, 2 * rows[inner[:, 0], inner[:, 1] + 1]], axis=1),
        ]
    )
    points: nx.Graph[int] = nx.Graph()
    points.add_nodes_from(range(2 * num_rows, 2 * num_rows + n))
    points.add_edges_from(np.unique(joints, axis=0).tolist())
    vertex: dict[int, str] = {}
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for device in range(n):
        graph.add_node(f"gpu{device}", role="gpu", node=int(topology.node_of[device]))
    for members in sorted(nx.connected_components(points), key=min):
        inside = sorted(point - 2 * num_rows for point in members if point >= 2 * num_rows)
        name = f"gpu{inside[0]}" if inside else f"switch{graph.number_of_nodes() - n}"
        if not inside:
            graph.add_node(name, role="switch")
        vertex.update(dict.fromkeys(members, name))
    for row in np.unique(rows[rows >= 0]).tolist():
        block = topology.resources.block(row)
        tail, head = vertex[2 * row], vertex[2 * row + 1]
        if graph.has_edge(tail, head):
            other = graph.edges[tail, head]["name"]
            raise ValueError(f"{topology.name}: {other} and {topology.resources.name(row)} join the same two vertices")
        graph.add_edge(
            tail,
            head,
            bandwidth=float(topology.resources.capacity[row]),
            latency=float(topology.resources.latency_ns[row]) / 1e9,
            num_links=block.num_links,
            kind=block.kind,
            name=topology.resources.name(row),
        )
    return graph
