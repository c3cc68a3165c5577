"""Which scale-up networks are meshes of direct links, and which GPU sits where in one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.cluster import ClusterRouter
from clustersim.topology.rings import direct_links
from clustersim.topology.topology import Topology

__all__ = ["Meshes", "meshes"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Meshes:
    """The different meshes of a cluster, laid side by side; equal nodes are one mesh.

    Parameters
    ----------
    spot : NDArray[int64], shape (num_devices,)
        where each device sits: a GPU of one of the meshes, -1 on a node without direct links
    num_links : NDArray[int64], shape (num_spots, num_spots)
        direct links between each two spots, 0 between different meshes
    """

    spot: NDArray[np.int64]
    num_links: NDArray[np.int64]


def meshes(topology: Topology) -> Meshes | None:
    """The meshes of a cluster, None where all nodes are switched.

    Where all nodes are equal by construction only the first is looked at, so that a switched cluster costs the routes
    of one node whatever its size. A link that is there in one direction only is none.
    """
    router, devices = topology.router, np.arange(topology.num_devices)
    if isinstance(router, ClusterRouter):
        links = _links(topology, devices[: router.num_gpus])
        if not links.any():
            return None
        node, spot = np.divmod(devices, router.num_gpus)
        if np.array_equal(node, topology.node_of):
            return Meshes(spot=spot, num_links=links)
    return _of_each_node(topology)


def _of_each_node(topology: Topology) -> Meshes | None:
    first: dict[tuple[tuple[int, ...], ...], int] = {}
    num_spots = 0
    spot = np.full(topology.num_devices, -1, dtype=np.int64)
    for node in _nodes_with_links(topology):
        devices = np.flatnonzero(topology.node_of == node)
        links = tuple(map(tuple, _links(topology, devices).tolist()))
        if links not in first:
            first[links] = num_spots
            num_spots += len(devices)
        spot[devices] = first[links] + np.arange(len(devices))
    if not first:
        return None
    num_links = np.zeros((num_spots, num_spots), dtype=np.int64)
    for links, start in first.items():
        num_links[start : start + len(links), start : start + len(links)] = links
    return Meshes(spot=spot, num_links=num_links)


def _nodes_with_links(topology: Topology) -> NDArray[np.int64]:
    """Nodes with two devices that one resource joins: all pairs of all nodes, by their distance in the numbering."""
    node_of = topology.node_of
    found = np.zeros(topology.num_nodes, dtype=bool)
    for apart in range(1, int(np.bincount(node_of).max(initial=1))):
        near = np.flatnonzero(node_of[apart:] == node_of[:-apart])
        direct = (topology.route(near, near + apart) >= 0).sum(axis=1) == 1
        found[node_of[near[direct]]] = True
    return np.flatnonzero(found)


def _links(topology: Topology, devices: NDArray[np.int64]) -> NDArray[np.int64]:
    links = direct_links(topology, devices)
    return np.minimum(links, links.T)
