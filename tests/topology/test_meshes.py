"""Which nodes are meshes."""

from time import perf_counter

import networkx as nx
import numpy as np
import pytest

from clustersim.topology.cluster import ClusterRouter, connect
from clustersim.topology.fabric import Ports
from clustersim.topology.graph import from_networkx
from clustersim.topology.mesh import HYBRID_CUBE_MESH, hybrid_cube_mesh
from clustersim.topology.meshes import meshes
from clustersim.topology.pcie_tree import pcie_tree
from clustersim.topology.rail_optimized import rail_optimized


def cubes(parts, num_nodes):
    node = hybrid_cube_mesh(gpu=parts.gpu, link=parts.nvlink, host=parts.host)
    ports = Ports.spread(nic=parts.nic, nics_per_node=8, num_gpus=8)
    fabric = rail_optimized(ports=ports, switch=parts.switch, num_nodes=num_nodes)
    return connect(node, fabric, name="cubes", num_nodes=num_nodes)


def graph(parts, *nodes):
    """Nodes of three GPUs, each given by its direct links (GPU, GPU, count); all GPUs of a node hang on its switch."""
    made = nx.DiGraph()
    made.add_node("core", role="switch")
    wires = []
    for i, links in enumerate(nodes):
        made.add_node(i, role="switch")
        made.add_nodes_from(((i, gpu) for gpu in range(3)), role="gpu", node=i)
        wires += [((i, a), (i, b), count) for a, b, count in links]
        wires += [wire for gpu in range(3) for wire in (((i, gpu), i, 1), (i, (i, gpu), 1))]
        wires += [(i, "core", 1), ("core", i, 1)]
    for a, b, count in wires:
        made.add_edge(a, b, bandwidth=1e9 * count, latency=0.0, num_links=count)
    return from_networkx(made, gpu=parts.gpu, cpu=parts.cpu)


def both(*links):
    return [wire for a, b, count in links for wire in ((a, b, count), (b, a, count))]


def test_switched_nodes_are_none(make, parts):
    assert meshes(make(4)) is None
    assert meshes(connect(pcie_tree(gpu=parts.gpu, num_gpus=4, host=parts.host), None, name="pcie")) is None


def test_a_switched_cluster_costs_the_routes_of_one_node(make, monkeypatch):
    pairs = []
    route = ClusterRouter.__call__
    monkeypatch.setattr(ClusterRouter, "__call__", lambda self, a, b: pairs.append(len(a)) or route(self, a, b))
    assert meshes(make(512)) is None
    assert pairs == [8 * 7]


def test_equal_nodes_are_one_mesh(parts):
    found = meshes(cubes(parts, 3))
    assert found.spot.tolist() == 3 * list(range(8))
    assert found.num_links.tolist() == [list(row) for row in HYBRID_CUBE_MESH]


def test_unequal_nodes_are_told_apart(parts):
    triangle, pair = both((0, 1, 1), (1, 2, 1), (2, 0, 1)), both((0, 1, 4))
    found = meshes(graph(parts, triangle, pair, [], triangle))
    assert found.spot.tolist() == [0, 1, 2, 3, 4, 5, -1, -1, -1, 0, 1, 2]
    assert found.num_links[:3, :3].tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert found.num_links[3:, 3:].tolist() == [[0, 4, 0], [4, 0, 0], [0, 0, 0]]
    assert not found.num_links[:3, 3:].any()
    assert not found.num_links[3:, :3].any()


def test_a_link_of_one_direction_is_none(parts):
    found = meshes(graph(parts, [*both((0, 1, 2), (1, 2, 1)), (0, 2, 1)]))
    assert found.num_links.tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]


@pytest.mark.benchmark
def test_a_switched_cluster_of_a_million_gpus_costs_less_than_numbering_them(make):
    cluster = make(1 << 17)

    def best(call):
        def once():
            start = perf_counter()
            call()
            return perf_counter() - start

        return min(once() for _ in range(5))

    assert best(lambda: meshes(cluster)) < best(lambda: np.unique(cluster.node_of))
