"""Shortest routes, held against networkx."""

import networkx as nx
import numpy as np
import pytest

from clustersim.topology.shortest import shortest_routes


def arrays(graph):
    """Both directions of each edge, side by side."""
    ends = np.array([way for a, b in graph.edges for way in ((a, b), (b, a))], dtype=np.int64)
    latency = np.repeat([graph.edges[edge]["latency"] for edge in graph.edges], 2).astype(np.int64)
    return ends[:, 0], ends[:, 1], latency


@pytest.mark.parametrize("seed", range(6))
def test_latency_first_then_hops(seed):
    graph = nx.gnm_random_graph(30, 70, seed=seed)
    graph.add_edges_from((i, i + 1) for i in range(29))
    random = np.random.default_rng(seed)
    for edge in graph.edges:
        graph.edges[edge]["latency"] = int(random.integers(0, 4))
        graph.edges[edge]["weight"] = graph.edges[edge]["latency"] + 1e-3
    tail, head, latency = arrays(graph)
    devices = np.arange(0, 30, 2)
    routes = shortest_routes(tail, head, latency, devices, num_vertices=30, mirrored=True)
    best = dict(nx.all_pairs_dijkstra_path_length(graph))
    for i, a in enumerate(devices):
        for j, b in enumerate(devices):
            links = routes[i, j][routes[i, j] >= 0]
            stops = [a, *head[links]]
            assert stops[-1] == b
            assert tail[links].tolist() == stops[:-1]
            assert latency[links].sum() + 1e-3 * len(links) == pytest.approx(best[a][b])
            assert routes[j, i][routes[j, i] >= 0].tolist() == (links[::-1] ^ 1).tolist()


def test_ties_go_to_the_link_that_comes_first():
    square = nx.Graph([(0, 1), (0, 2), (1, 3), (2, 3)])
    nx.set_edge_attributes(square, 1, "latency")
    routes = shortest_routes(*arrays(square), np.array([0, 3]), num_vertices=4)
    assert routes[0, 1].tolist() == [0, 4]  # 0-1, 1-3


def test_what_cannot_be_reached_has_no_route():
    tail, head = np.array([0, 1]), np.array([1, 2])
    routes = shortest_routes(tail, head, np.array([5, 5]), np.array([0, 2]), num_vertices=4)
    assert routes[0, 1].tolist() == [0, 1]
    assert routes[1, 0].tolist() == [-1, -1]
    nothing = np.array([], dtype=np.int64)
    assert shortest_routes(nothing, nothing, nothing, np.array([0, 1]), num_vertices=2).shape == (2, 2, 0)
