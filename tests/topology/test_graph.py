"""A graph of one's own in, any topology out, and both ways round."""

import networkx as nx
import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.topology import Topology


@pytest.fixture
def star():
    """Four GPUs on two nodes around a switch."""
    graph = nx.Graph()
    graph.add_node("hub", role="switch")
    for i in range(4):
        graph.add_node(f"g{i}", role="gpu", node=i % 2)
        graph.add_edge(f"g{i}", "hub", bandwidth="25 GB/s", latency="1 us", num_links=2)
    return graph


@pytest.fixture
def read(parts):
    return lambda graph, **more: Topology.from_networkx(graph, gpu=parts.gpu, cpu=parts.cpu, **more)


def test_devices_stand_node_by_node(read, star, names):
    topology = read(star)
    assert topology.node_of.tolist() == [0, 0, 1, 1]
    assert names(topology, 0, 1) == ["g0->hub", "hub->g2"]  # the second GPU of node 0 is g2
    row = topology.resources.find("g0->hub")
    assert (topology.resources.capacity[row], topology.resources.latency_ns[row]) == (25 * 10**9, 1000)
    assert topology.without_links(["g0->hub"]).resources.capacity[row] == 12.5e9


def test_memory_and_host_links_are_beside_the_graph(read, star, parts):
    topology = read(star, host_link=parts.pcie)
    rows = topology.local["h2d"].rows[3]
    assert topology.resources.names(rows) == ["node1/dram", "gpu3/pcie.down"]
    assert topology.resources.names(topology.local["d2h"].rows[3]) == ["gpu3/pcie.up", "node1/dram"]
    assert topology.resources.names(topology.local["hbm"].rows[2]) == ["gpu2/hbm"]
    assert "h2d" not in read(star).local


def test_a_directed_graph_has_the_ways_it_gives(read):
    ring = nx.DiGraph()
    ring.add_nodes_from(range(4), role="gpu")
    for i in range(4):
        ring.add_edge(i, (i + 1) % 4, bandwidth=1e9, latency=0.0, name=f"hop{i}", kind="ring")
    topology = read(ring)
    rows = topology.route(np.array([0, 3]), np.array([3, 0]))
    assert [topology.resources.names(row[row >= 0]) for row in rows] == [["hop0", "hop1", "hop2"], ["hop3"]]
    assert topology.resources.kinds[0] == "ring"


@pytest.mark.parametrize(
    "shape", [(4, fat_tree, {"radix": 16}), (3, fat_tree, {"nics_per_node": 2}), (1, fat_tree, {})]
)
def test_a_tree_drawn_and_read_again_routes_alike(make, read, shape):
    num_nodes, family, arguments = shape
    topology = make(num_nodes, family, **arguments)
    again = read(topology.to_networkx())
    pairs = np.nonzero(~np.eye(topology.num_devices, dtype=bool))
    for first, second in zip(topology.route(*pairs), again.route(*pairs), strict=True):
        crossed = [topology.resources.names(first[first >= 0]), again.resources.names(second[second >= 0])]
        assert crossed[0] == crossed[1]
        assert (topology.resources.capacity[first[0]], topology.resources.latency_ns[first[0]]) == (
            again.resources.capacity[second[0]],
            again.resources.latency_ns[second[0]],
        )
    assert (again.node_of == topology.node_of).all()


def test_a_graph_read_and_drawn_is_the_graph(read, star):
    drawn = read(star).to_networkx()
    assert sorted(drawn.nodes) == ["gpu0", "gpu1", "gpu2", "gpu3", "switch0"]
    assert nx.is_isomorphic(drawn, star.to_directed(as_view=True))
    assert drawn.edges["gpu0", "switch0"] == {
        "bandwidth": 25e9,
        "latency": 1e-6,
        "num_links": 2,
        "kind": "link",
        "name": "g0->hub",
    }


def test_too_many_devices_are_refused_both_ways(make, read):
    crowd = nx.star_graph(513)
    nx.set_node_attributes(crowd, "gpu", "role")
    nx.set_edge_attributes(crowd, 1e9, "bandwidth")
    nx.set_edge_attributes(crowd, 0.0, "latency")
    with pytest.raises(BadInput, match="1 to 512"):
        read(crowd)
    with pytest.raises(ValueError, match="at most 512"):
        make(65).to_networkx()


def test_every_fault_of_a_graph_at_once(read):
    graph = nx.Graph()
    graph.add_node("a", role="gup")
    graph.add_node("b", rôle="gpu", role="gpu")
    graph.add_edge("a", "b", bandwith=1e9, latency="1 GB", num_links=0)
    graph.add_edge("b", "b", bandwidth=0.5, latency=0.0)
    with pytest.raises(BadInput) as error:
        read(graph)
    found = {(fault.key, str(fault.nearest)) for fault in error.value.faults}
    assert {
        ("a.role", "gpu"),
        ("b", "role"),
        ("a->b", "bandwidth"),
        ("a->b.bandwidth", "None"),
        ("a->b.num_links", "1"),
        ("b->b.bandwidth", "1"),
        ("b->b", "None"),
    } <= found
    assert "a->b.latency" in {key for key, _ in found}


def test_parallel_edges_and_repeated_names_are_refused(read, star):
    with pytest.raises(BadInput, match="num_links"):
        read(nx.MultiGraph(star))
    both = star.to_directed()
    nx.set_edge_attributes(both, "same", "name")
    with pytest.raises(BadInput, match="is the name of two links"):
        read(both)


def test_numbers_that_no_link_has_and_more_links_than_ports_are_named_together(parts):
    graph = nx.Graph()
    graph.add_node("a", role="gpu", radix=1)
    graph.add_node("b", role="gpu", radix=0)
    graph.add_node("s", role="switch", radix=4)
    graph.add_edge("a", "s", bandwidth=float("nan"), latency=-1e-6, num_links=2)
    graph.add_edge("b", "s", bandwidth=1e19, latency=float("nan"), num_links=3)
    with pytest.raises(BadInput) as error:
        Topology.from_networkx(graph, gpu=parts.gpu, cpu=parts.cpu)
    assert [(fault.key, fault.nearest) for fault in error.value.faults] == [
        ("a.radix", 2),
        ("b.radix", 1),
        ("s.radix", 5),
        ("a->s.bandwidth", None),
        ("a->s.latency", None),
        ("b->s.latency", None),
        ("b->s.bandwidth", 10**18),
    ]


def test_a_directed_link_that_is_wider_one_way_is_a_note(parts):
    graph = nx.DiGraph()
    graph.add_nodes_from("ab", role="gpu", radix=1)
    graph.add_edge("a", "b", bandwidth=2e9, latency=0)
    graph.add_edge("b", "a", bandwidth=1e9, latency=0)
    topology = Topology.from_networkx(graph, gpu=parts.gpu, cpu=parts.cpu)
    assert topology.notes == ("route 0 -> 1: 2000000000 must be as wide as the way back [B/s]: 1000000000",)
