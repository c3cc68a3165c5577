"""Failed ports, leaves, rails and spines: what is left, and which way traffic goes then."""

from dataclasses import replace

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.check import check
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.rail_optimized import rail_optimized


def capacity(topology, name):
    return int(topology.resources.capacity[topology.resources.find(name)])


def crossed(topology):
    source, destination = np.nonzero(~np.eye(topology.num_devices, dtype=bool))
    rows = topology.route(source, destination)
    return set(topology.resources.names(np.unique(rows[rows >= 0])))


class TestRails:
    def test_a_failed_port_hands_its_traffic_to_the_next_rail_at_both_ends(self, make, names):
        topology = make(3).without_links(["node1/nic2"])
        assert names(topology, 2, 8 + 2) == [
            "node0/gpu2/nvlink.up",
            "node0/gpu3/nvlink.down",
            "node0/gpu3/pcie.up",
            "node0/nic3.tx",
            "node1/nic3.rx",
            "node1/gpu3/pcie.down",
            "node1/gpu3/nvlink.up",
            "node1/gpu2/nvlink.down",
        ]
        assert names(topology, 2, 16 + 2) == names(make(3), 2, 16 + 2)
        assert "next rail" in topology.notes[-1]

    def test_so_does_one_that_cannot_send_any_more(self, make):
        one, both = make(2).without_links(["node1/nic2.tx"]), make(2).without_links(["node1/nic2"])
        pairs = np.arange(8), np.arange(8, 16)
        assert (one.route(*pairs) == both.route(*pairs)).all()

    def test_the_next_rail_is_one_that_is_up_at_both_ends(self, make, names):
        topology = make(2).without_links(["node0/nic2", "node1/nic3", "node0/nic4"])
        assert "node0/nic5.tx" in names(topology, 2, 8 + 2)
        assert "node0/nic0.tx" in names(make(2).without_links(["node1/nic7"]), 7, 15)

    @pytest.mark.parametrize("lost", [["leaf5"], ["rail5"], ["leaf5", "leaf13"]])
    def test_a_failed_leaf_or_rail_is_not_crossed_and_every_pair_still_meets(self, make, lost):
        topology = make(33).without_links(lost)
        used = crossed(topology)
        dead = 32 if lost == ["leaf5"] else 33  # node32 hangs on leaf13
        assert not {f"node{n}/nic5.{way}" for n in range(dead) for way in ("tx", "rx")} & used
        assert check(topology) == []

    def test_a_rail_of_a_fabric_without_a_spine(self, make):
        topology = make(5, levels=1).without_links(["rail3"])
        assert not any("nic3" in name for name in crossed(topology))

    def test_a_port_of_several_links_loses_its_share_first(self, make):
        topology = make(2, nics_per_node=32)
        left = topology.without_links(["node0/nic1"])
        assert capacity(left, "node0/nic1.tx") * 4 == capacity(topology, "node0/nic1.tx") * 3
        assert capacity(left, "node0/nic1.rx") * 4 == capacity(topology, "node0/nic1.rx") * 3
        gone = topology.without_links(["node0/nic1"] * 4)
        assert "node0/nic1.tx" not in crossed(gone)

    def test_no_rail_left_whole_is_refused(self, make):
        with pytest.raises(BadInput, match="each rail has failed on some node"):
            make(8).without_links([f"node{n}/nic{n}" for n in range(8)])
        with pytest.raises(BadInput, match="1 nodes have no port left, node1 the first"):
            make(2).without_links([f"node1/nic{p}" for p in range(8)])


class TestOtherFabrics:
    def test_without_relays_the_next_port_is_reached_through_the_host(self, make, names):
        topology = make(2, fat_tree).without_links(["node0/nic3"])
        assert names(topology, 3, 8 + 6) == [
            "node0/gpu3/pcie.up",
            "node0/nic4.tx",
            "node1/nic6.rx",
            "node1/gpu6/pcie.down",
        ]
        assert "through the host" in topology.notes[-1]

    def test_the_only_leaf_of_a_node_is_refused(self, make):
        with pytest.raises(BadInput, match="4 nodes have no port left, node4 the first"):
            make(9, fat_tree).without_links(["leaf1"])

    def test_spines_take_their_share_of_the_links_on_them(self, make):
        topology = make(48, fat_tree, radix=16, levels=3)
        left = topology.without_links(["pod0", "pod0", "core0"])
        for name, share in {
            "leaf0/up": 6 / 8,
            "leaf7/down": 6 / 8,
            "leaf8/up": 1,
            "pod0/up": 6 / 8 * 23 / 24,
            "pod1/down": 23 / 24,
        }.items():
            assert capacity(left, name) == round(capacity(topology, name) * share), name
        with pytest.raises(BadInput, match="8 of 8 switches failed"):
            topology.without_links(["pod0"] * 8)

    def test_a_spine_takes_its_engine_along(self, make, parts):
        switch = replace(parts.switch, reduction_bandwidth=60e9, reduction_slots=1)
        topology = make(48, lambda **g: fat_tree(**{**g, "switch": switch}), radix=16, levels=3, sharp=True)
        left = topology.without_links(["pod0"])
        assert capacity(left, "pod0/reduce") * 8 == capacity(topology, "pod0/reduce") * 7


def test_reductions_take_the_same_detour(make, parts):
    switch = replace(parts.switch, reduction_bandwidth=60e9, reduction_slots=1)
    topology = make(2, lambda **g: rail_optimized(**{**g, "switch": switch}), sharp=True).without_links(["rail0"])
    rows = topology.in_network.router(np.array([0]), np.array([8]))[0]
    assert "leaf1/reduce" in topology.resources.names(rows[rows >= 0])


def test_every_fault_at_once(make):
    with pytest.raises(BadInput) as error:
        make(2).without_links(
            ["leaf99", "node0/nic9", "node0", "node0/gpu1/hbm", "leaf0/up"] + ["node1/gpu0/pcie.up"] * 2
        )
    found = [(fault.value, fault.nearest) for fault in error.value.faults]
    assert found == [
        ("leaf99", "leaf7/up"),
        ("node0/nic9", "node0/nic7.tx"),
        ("node0", "node0/nic0.tx"),
        ("node1/gpu0/pcie.up", "slow_links of node1/gpu0/pcie.up"),
        ("node0/gpu1/hbm", "slow_links of node0/gpu1/hbm"),
    ]


def test_a_graph_of_ones_own_has_no_detours(parts):
    import networkx as nx

    from clustersim.topology.topology import Topology

    graph = nx.Graph()
    graph.add_nodes_from("ab", role="gpu")
    graph.add_edge("a", "b", bandwidth=1e9, latency=0)
    with pytest.raises(BadInput, match="1 of 1 parallel links"):
        Topology.from_networkx(graph, gpu=parts.gpu, cpu=parts.cpu).without_links(["a->b"])
