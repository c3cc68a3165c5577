"""Dragonfly+: up, across, down; loads in closed form; sizes and faults."""

import time

import networkx as nx
import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.check import check
from clustersim.topology.dragonfly_plus import dragonfly_plus

SMALL = {"leaves_per_group": 3, "spines_per_group": 2, "nodes_per_leaf": 2, "global_links": 4}


def switches(leaves, spines, groups):
    """Leaves and spines of every group, spines of two groups linked: ideal spreading may use any."""
    graph = nx.Graph()
    for g in range(groups):
        graph.add_edges_from((("leaf", g, i), ("spine", g, s)) for i in range(leaves) for s in range(spines))
        graph.add_edges_from((("spine", g, s), ("spine", j, s)) for j in range(g) for s in range(spines))
    return graph


def test_routes_have_as_many_switch_hops_as_the_shortest_walk(wire):
    topology = wire(dragonfly_plus, 24, **SMALL)  # four groups of six
    distance = dict(nx.all_pairs_shortest_path_length(switches(3, 2, 4)))
    source, destination = np.nonzero(~np.eye(24, dtype=bool))
    hops = (topology.route(source, destination) >= 0).sum(axis=1) - 4  # less PCIe and network cards
    expected = [
        distance["leaf", a // 6, a // 2 % 3]["leaf", b // 6, b // 2 % 3]
        for a, b in zip(source.tolist(), destination.tolist(), strict=True)
    ]
    assert hops.tolist() == expected
    assert check(topology) == []


def test_names_say_the_way(wire, names):
    topology = wire(dragonfly_plus, 24, **SMALL)
    assert names(topology, 0, 1)[2:-2] == []
    assert names(topology, 0, 3)[2:-2] == ["group0/leaf0/up", "group0/leaf1/down"]
    assert names(topology, 0, 23)[2:-2] == ["group0/leaf0/up", "group0/peer2/global", "group3/leaf2/down"]
    assert names(topology, 23, 0)[2:-2] == ["group3/leaf2/up", "group3/peer0/global", "group0/leaf0/down"]


def test_uniform_traffic_loads_equal_links_alike(wire):
    topology = wire(dragonfly_plus, 24, **SMALL)
    source, destination = np.nonzero(~np.eye(24, dtype=bool))
    rows = topology.route(source, destination)
    load = np.bincount(rows[rows >= 0], minlength=len(topology.resources))
    kinds = {kind: load[topology.resources.kind == i] for i, kind in enumerate(topology.resources.kinds)}
    assert set(kinds["global"].tolist()) == {36}  # six nodes to six
    assert set(kinds["leaf_up"].tolist()) == set(kinds["leaf_down"].tolist()) == {2 * 22}


def test_bundles_count_their_links(wire):
    table = wire(dragonfly_plus, 24, local_links=2, **SMALL).resources
    up, across = table.find("group1/leaf2/up"), table.find("group1/peer0/global")
    assert (table.block(up).num_links, table.capacity[up]) == (4, 4 * 45_000_000_000)
    assert (table.block(across).num_links, table.capacity[across]) == (2, 2 * 45_000_000_000)  # 2 · 4 over 3 groups


def test_left_out_half_of_the_ports_lead_each_way(wire):
    path = wire(dragonfly_plus, 200, num_gpus=8).router.crossing.path
    assert (path.leaves, path.nodes_per_leaf, path.groups) == (32, 4, 2)


@pytest.mark.parametrize(
    ("num_nodes", "arguments", "faults"),
    [
        (
            8,
            {"leaves_per_group": 0, "nodes_per_leaf": 0},
            [("fabric.leaves_per_group", 1), ("fabric.nodes_per_leaf", 1)],
        ),
        (8, SMALL | {"radix": 6}, [("fabric.radix", 7)]),
        (8, SMALL | {"radix": 3, "global_links": 1}, [("fabric.radix", 4)]),
        (99, SMALL, [("nodes", 54)]),
        (24, SMALL | {"groups": 3}, [("fabric.groups", 4)]),
        (24, SMALL | {"group_links": 3}, [("fabric.group_links", 2)]),
    ],
)
def test_what_does_not_fit_names_the_nearest_that_does(wire, num_nodes, arguments, faults):
    with pytest.raises(BadInput) as error:
        wire(dragonfly_plus, num_nodes, **arguments)
    assert [(fault.key, fault.nearest) for fault in error.value.faults] == faults


def test_131072_gpus_take_few_arrays_and_little_time(wire):
    begin = time.process_time()
    topology = wire(dragonfly_plus, 16384, num_gpus=8)
    device = np.arange(topology.num_devices)
    topology.route(device, device[::-1].copy())
    assert time.process_time() - begin < 3
    assert len(topology.resources.blocks) < 30
