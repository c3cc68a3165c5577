"""Sites over a WAN: each is the tree it would be alone; what crosses climbs to the top and comes down."""

import time

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.check import check
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.rail_optimized import rail_optimized
from clustersim.topology.two_sites import two_sites

WAN = {"wan_bandwidth": 12.5e9, "wan_latency": 0.103}


def test_what_crosses_climbs_to_the_top(wire, names):
    topology = wire(two_sites, 16, num_gpus=2, radix=4, levels=3, **WAN)
    assert names(topology, 0, 31)[1:-1] == [
        "node0/nic0.tx",
        "site0/leaf0/up",
        "site0/pod0/up",
        "site0/peer0/wan",
        "site1/pod3/down",
        "site1/leaf7/down",
        "node15/nic1.rx",
    ]
    assert names(topology, 16, 0)[4] == "site1/peer0/wan"


@pytest.mark.parametrize(
    ("within", "alone", "arguments"),
    [
        ("fat_tree", fat_tree, {"radix": 8, "oversubscription": 3}),
        ("fat_tree", fat_tree, {}),
        ("rail_optimized", rail_optimized, {"radix": 8, "pxn": False}),
        ("rail_optimized", rail_optimized, {"radix": 8, "rails": 2}),
    ],
)
def test_inside_a_site_routes_are_those_of_its_tree(wire, names, within, alone, arguments):
    topology = wire(two_sites, 24, num_gpus=4, within=within, **arguments, **WAN)
    one = wire(alone, 12, num_gpus=4, **arguments)
    for source, destination in ((0, 5), (1, 46), (3, 20), (47, 0)):
        expected = names(one, source, destination)
        expected = [f"site0/{name}" if name.startswith(("leaf", "pod")) else name for name in expected]
        assert names(topology, source, destination) == expected
        there = names(topology, source + 48, destination + 48)
        assert [name.split("/")[1:] for name in there] == [name.split("/")[1:] for name in expected]
        rows, mine = (t.route(np.array([source]), np.array([destination]))[0] for t in (one, topology))
        assert topology.resources.capacity[mine].tolist() == one.resources.capacity[rows].tolist()
        assert topology.resources.latency_ns[mine].tolist() == one.resources.latency_ns[rows].tolist()


def test_every_pair_is_reached_alike_both_ways(wire):
    for sites, nodes in ((2, 7), (3, 10), (4, 3)):
        topology = wire(two_sites, nodes, num_gpus=2, sites=sites, radix=4, **WAN)
        assert check(topology) == []
        every = np.arange(len(topology.resources))
        assert [topology.resources.find(topology.resources.name(row)) for row in every] == every.tolist()


def test_latency_of_the_wan_and_a_switch_more(wire):
    topology = wire(two_sites, 4, **WAN)  # a switch a site
    latency = np.append(topology.resources.latency_ns, 0)
    near, far = (latency[topology.route(np.array([0]), np.array([d]))].sum() for d in (1, 2))
    assert far - near == 103_000_000 + 400


def test_nodes_that_do_not_divide_are_noted_and_spread(wire, names):
    topology = wire(two_sites, 5, sites=3, **WAN)
    assert topology.notes == ("5 nodes do not divide over 3 sites: 2 of them have one more",)
    assert not any("wan" in name for name in names(topology, 2, 3))
    assert "site0/peer1/wan" in names(topology, 0, 4)
    assert wire(two_sites, 4, **WAN).notes == ()


def test_three_sites_share_no_connection(wire):
    topology = wire(two_sites, 6, sites=3, **WAN)
    source, destination = np.nonzero(~np.eye(6, dtype=bool))
    rows = topology.route(source, destination)
    wan = [topology.resources.find(f"site{a}/peer{b}/wan") for a in range(3) for b in range(2)]
    assert [(rows == row).sum() for row in wan] == [4] * 6


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ({"sites": 1}, ["fabric.sites"]),
        ({"wan_bandwidth": 0, "wan_latency": -1}, ["fabric.wan_bandwidth", "fabric.wan_latency"]),
        ({"wan_bandwidth": float("nan"), "wan_latency": float("inf")}, ["fabric.wan_bandwidth", "fabric.wan_latency"]),
        ({"within": "torus"}, ["fabric.within"]),
        ({"rails": 2, "pxn": True}, ["fabric.rails", "fabric.pxn"]),
        ({"oversubscription": 0}, ["fabric.oversubscription"]),
        ({"within": "rail_optimized", "rails": 99}, ["fabric.rails"]),
    ],
)
def test_what_is_wrong_comes_at_once(wire, arguments, keys):
    with pytest.raises(BadInput) as error:
        wire(two_sites, 8, **(WAN | arguments))
    assert [fault.key for fault in error.value.faults] == keys


def test_131072_gpus_take_few_arrays_and_little_time(wire):
    begin = time.process_time()
    topology = wire(two_sites, 16384, num_gpus=8, **WAN)
    device = np.arange(topology.num_devices)
    topology.route(device, device[::-1].copy())
    assert time.process_time() - begin < 3
    assert len(topology.resources.blocks) < 30
