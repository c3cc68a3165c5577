"""Switch trees: who shares a leaf, what over-subscription leaves, how many levels hold how many nodes."""

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.rail_optimized import rail_optimized


def hops(topology, source, destination):
    return topology.route(np.array([source]), np.array([destination])).shape[1]


class TestRailOptimized:
    def test_one_rail_of_one_group_crosses_one_switch(self, make, names):
        topology = make(33)  # a leaf of 64 ports holds 32 nodes
        assert names(topology, 1, 8 * 31 + 1) == [
            "node0/gpu1/pcie.up",
            "node0/nic1.tx",
            "node31/nic1.rx",
            "node31/gpu1/pcie.down",
        ]
        assert names(topology, 1, 8 * 32 + 1)[2:4] == ["leaf1/up", "leaf9/down"]

    def test_latency_counts_each_switch_once(self, make):
        topology = make(33)
        latency = np.append(topology.resources.latency_ns, 0)
        near = latency[topology.route(np.array([1]), np.array([8 * 31 + 1]))].sum()
        far = latency[topology.route(np.array([1]), np.array([8 * 32 + 1]))].sum()
        assert near == 2 * 300 + 2 * 1000 + 400  # two PCIe links, two NICs, one switch
        assert far == near + 2 * 400  # a spine and the other leaf

    def test_another_rail_is_reached_over_nvlink_with_pxn(self, make, names):
        topology = make(4)
        assert names(topology, 0, 8 + 3) == [
            "node0/gpu0/nvlink.up",
            "node0/gpu3/nvlink.down",
            "node0/gpu3/pcie.up",
            "node0/nic3.tx",
            "node1/nic3.rx",
            "node1/gpu3/pcie.down",
        ]

    def test_and_over_the_spine_without(self, make, names):
        assert names(make(4, pxn=False), 0, 8 + 3) == [
            "node0/gpu0/pcie.up",
            "node0/nic0.tx",
            "leaf0/up",
            "leaf3/down",
            "node1/nic3.rx",
            "node1/gpu3/pcie.down",
        ]

    def test_rails_without_a_spine_need_pxn(self, make):
        topology = make(64, levels=1)
        assert not any(kind.startswith("leaf") for kind in topology.resources.kinds)
        with pytest.raises(BadInput, match="leaves no way between rails"):
            make(64, levels=1, pxn=False)

    def test_a_rail_may_take_several_ports_of_a_node(self, make, names):
        topology = make(8, rails=4, pxn=False, radix=16)
        # leaf p % 4; two ports of each node fill the eight lower ports of a leaf with four nodes
        assert names(topology, 1, 8 + 5)[1:-1] == ["node0/nic1.tx", "node1/nic5.rx"]
        assert names(topology, 1, 8 * 4 + 5)[2:4] == ["leaf1/up", "leaf5/down"]


class TestFatTree:
    def test_all_ports_of_a_node_share_a_leaf(self, make, names):
        topology = make(8, fat_tree, levels=2)  # 32 ports down: four nodes of eight
        assert hops(topology, 0, 8 * 3 + 7) == 4
        assert names(topology, 0, 8 * 4)[2:4] == ["leaf0/up", "leaf1/down"]

    def test_one_switch_is_enough_for_64_ports(self, make):
        assert make(8, fat_tree).resources.kinds.count("leaf_up") == 0
        assert make(9, fat_tree).resources.kinds.count("leaf_up") == 1

    def test_three_levels_climb_as_high_as_they_must(self, make, names):
        topology = make(48, fat_tree, radix=16, levels=3)  # a node to a leaf, 8 leaves to a pod
        assert names(topology, 0, 8)[2:-2] == ["leaf0/up", "leaf1/down"]
        assert names(topology, 0, 8 * 8)[2:-2] == ["leaf0/up", "pod0/up", "pod1/down", "leaf8/down"]


@pytest.mark.parametrize("oversubscription", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("family", [rail_optimized, fat_tree])
def test_a_leaf_sends_up_what_its_nodes_send_divided_by_the_oversubscription(make, family, oversubscription):
    topology = make(200, family, oversubscription=oversubscription)
    tier = topology.router.crossing.path.tiers[0]
    ports = 1 if family is rail_optimized else 8
    into = tier.nodes * ports * 45e9
    up = topology.resources.capacity[topology.resources.find("leaf0/up")]
    # whole links: at most half a link off
    assert abs(up - into / oversubscription) <= 45e9 / 2
    assert topology.resources.block(topology.resources.find("leaf0/up")).num_links == tier.num_uplinks
    assert tier.nodes * ports + tier.num_uplinks <= 64


def test_the_bisection_of_an_oversubscribed_tree(make):
    """Two leaves, every GPU sends to the other one: each uplink carries all its nodes' traffic."""
    topology = make(12, fat_tree, oversubscription=3)  # 48 ports down, 16 up: six nodes a leaf
    source = np.arange(48)
    rows = topology.route(source, source + 48)
    up = topology.resources.find("leaf0/up")
    assert (rows == up).sum() == 48
    assert topology.resources.capacity[up] * 3 == 48 * topology.resources.capacity[rows[0, 1]]


def test_above_the_leaves_nothing_is_oversubscribed(make):
    topology = make(600, fat_tree, oversubscription=2)
    leaf, pod = topology.router.crossing.path.tiers
    assert pod.num_uplinks == leaf.num_uplinks * pod.nodes // leaf.nodes


def test_an_oversubscription_that_binds_nothing_is_noted(make):
    assert not make(16, oversubscription=1).notes
    assert "no effect" in make(16, oversubscription=4).notes[0]
    assert not make(16, oversubscription=4, pxn=False).notes
    assert "no effect" in make(5, fat_tree, oversubscription=2).notes[0]


@pytest.mark.parametrize(("num_nodes", "levels"), [(8, 1), (9, 2), (256, 2), (257, 3), (8192, 3), (8193, 4)])
def test_levels_grow_with_the_nodes(make, num_nodes, levels):
    """64-port switches: 64 ports, then 64 · 32, 64 · 32² and 64 · 32³ ports for nodes of eight."""
    topology = make(num_nodes, fat_tree)
    assert len(topology.router.crossing.path.tiers) == levels - 1


@pytest.mark.parametrize(
    ("arguments", "key", "nearest"),
    [
        ({"oversubscription": 0.5}, "fabric.oversubscription", 1),
        ({"levels": 0}, "fabric.levels", 1),
        ({"levels": 9}, "fabric.levels", 4),
        ({"levels": 1}, "fabric.levels", 2),
        ({"radix": 4}, "fabric.radix", 16),
        ({"ecmp": "hash"}, "fabric.ecmp", "hashed"),
        ({"ecmp": "flowlet"}, "fabric.ecmp", "ideal"),
        ({"ecmp_seed": -1}, "fabric.ecmp_seed", 0),
        ({"oversubscription": 1e18}, "fabric.oversubscription", 63),
    ],
)
def test_settings_out_of_range_name_the_nearest_legal_one(make, arguments, key, nearest):
    with pytest.raises(BadInput) as error:
        make(100, fat_tree, **arguments)
    (fault,) = error.value.faults
    assert (fault.key, fault.nearest) == (key, nearest)


def test_the_largest_oversubscription_leaves_one_uplink(make):
    tier = make(12, fat_tree, oversubscription=63).router.crossing.path.tiers[0]
    assert tier.num_uplinks == 1


def test_all_faults_come_at_once(make):
    with pytest.raises(BadInput) as error:
        make(0, oversubscription=0, levels=7, ecmp="random", ecmp_seed=-1, rails=9, sharp=True)
    assert [fault.key for fault in error.value.faults] == [
        "nodes",
        "fabric.oversubscription",
        "fabric.levels",
        "fabric.rails",
        "fabric.ecmp",
        "fabric.ecmp_seed",
        "fabric.sharp",
    ]


def test_more_nodes_than_four_levels_hold_are_refused(make):
    with pytest.raises(BadInput) as error:
        make(10**6, radix=16)
    (fault,) = error.value.faults
    assert (fault.key, fault.nearest) == ("nodes", 16 * 8 * 1 * 8)  # pods of one group of 8 nodes on 8 leaves
