"""Dragonfly: shortest walks over its wiring, loads in closed form, symmetry of groups, sizes and faults."""

import re
import time
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.faults import BadInput
from clustersim.hardware.nic import NIC
from clustersim.hardware.switch import Switch
from clustersim.topology.dragonfly import dragonfly
from clustersim.topology.fabric import Ports
from clustersim.topology.resources import ResourceTable

SWITCH = Switch(name="switch", radix=64, port_bandwidth=50e9, latency=400e-9)
NIC_ = NIC(name="nic", bandwidth=50e9, efficiency=0.9, latency=1e-6)


def lay(num_nodes, num_ports=1, **arguments):
    ports = Ports(nic=NIC_, of_gpu=tuple(range(num_ports)))
    return dragonfly(ports=ports, switch=SWITCH, num_nodes=num_nodes, **arguments)


def small(a=4, h=2, p=1, groups=9, num_ports=1, **arguments):
    """Full groups of a routers with h global links and p nodes each."""
    return lay(
        arguments.pop("num_nodes", a * p * groups),
        num_ports,
        routers_per_group=a,
        nodes_per_router=p,
        global_links=h,
        groups=groups,
        **{"rails": 1, **arguments},
    )


def wiring(a, groups, links):
    """(router, router, bundle) of every global link, written down from one end of each pair of groups only.

    Routers are (group, number). Links to later groups count from the first port of a group upwards, links to earlier
    ones from the last downwards; ports go round the routers.
    """
    ends = {}
    last = (groups - 1) * links - 1
    for i in range(groups):
        for j in range(i + 1, groups):
            for q in range(links):
                port = (j - i - 1) * links + q
                ends[i, j - i - 1, q % a] = (i, port % a), (j, (last - port) % a)
    return ends


def graph_of(a, groups, links):
    """Global links are long: no minimal route takes a second one to save two local hops (Kim et al., section 4.1)."""
    graph = nx.Graph()
    for g in range(groups):
        graph.add_edges_from((((g, r), (g, s)) for r in range(a) for s in range(r)), weight=1)
        graph.add_nodes_from((g, r) for r in range(a))
    graph.add_edges_from(wiring(a, groups, links).values(), weight=10)
    return graph


def step(name, a, groups, links):
    """The routers that a hop leads from and to."""
    one, two, three = (int(n) for n in re.findall(r"\d+", name))
    if "local" in name:
        return (one, two), (one, (two + 1 + three) % a)
    port = two * links + three
    return (one, port % a), ((one + 1 + two) % groups, ((groups - 1) * links - 1 - port) % a)


def routes(laid, num_nodes, num_ports=1):
    source, destination = np.nonzero(~np.eye(num_nodes, dtype=bool))
    source, destination = np.tile(source, num_ports), np.tile(destination, num_ports)
    port = np.repeat(np.arange(num_ports), len(source) // num_ports)
    return source, destination, laid.path(source, port, destination, port)


@pytest.mark.parametrize(
    ("a", "h", "p", "groups"),
    [(4, 2, 2, 9), (3, 1, 1, 4), (4, 2, 1, 5), (4, 3, 1, 4), (2, 4, 1, 3), (5, 1, 2, 1), (1, 4, 1, 5)],
)
def test_routes_are_shortest_walks_of_the_wiring(a, h, p, groups):
    laid = small(a, h, p, groups)
    links = laid.path.links
    graph = graph_of(a, groups, links)
    distance = dict(nx.all_pairs_dijkstra_path_length(graph))
    table = ResourceTable(laid.blocks)
    for source, destination, rows in zip(*routes(laid, a * p * groups), strict=True):
        here, goal = divmod(source // p, a), divmod(destination // p, a)
        hops = table.names(rows[rows >= 0])[1:-1]
        assert sum(10 if "global" in name else 1 for name in hops) == distance[here][goal]
        for name in hops:
            start, end = step(name, a, groups, links)
            assert start == here
            assert graph.has_edge(start, end)
            here = end
        assert here == goal
    ports = Counter(end for ends in wiring(a, groups, links).values() for end in ends)
    assert max(ports.values(), default=0) * max(1, links // a) <= h


@pytest.mark.parametrize(("h", "p"), [(1, 1), (2, 2), (3, 1)])
def test_uniform_traffic_over_a_canonical_dragonfly(h, p):
    """a = 2h, a·h + 1 groups, one link for each pair: a global link carries all traffic between two groups, a local one
    that between its two routers, and the way to and from the 2h other groups that its ends have links to."""
    a = 2 * h
    laid = small(a, h, p, a * h + 1)
    rows = routes(laid, a * p * (a * h + 1))[2]
    load = np.bincount(rows[rows >= 0], minlength=sum(block.count for block in laid.blocks))
    first = np.concatenate(([0], np.cumsum([block.count for block in laid.blocks])))
    local, across = (load[first[i] : first[i + 1]] for i in (2, 3))
    assert set(across.tolist()) == {(a * p) ** 2}
    assert set(local.tolist()) == {p * p + 2 * h * p * (a * p)}


@pytest.mark.parametrize(("a", "h", "groups", "num_ports"), [(4, 2, 5, 2), (4, 2, 3, 4), (4, 2, 2, 1)])
def test_parallel_links_of_two_groups_share_evenly(a, h, groups, num_ports):
    laid = small(a, h, 1, groups, num_ports)
    rows = routes(laid, a * groups, num_ports)[2]
    across = np.bincount(rows[rows >= 0])[-laid.blocks[-1].count :]
    assert set(across.tolist()) == {a * a * num_ports // laid.path.gateways}


@settings(max_examples=60, deadline=None)
@given(
    a=st.integers(1, 5),
    h=st.integers(1, 4),
    p=st.integers(1, 2),
    num_ports=st.integers(1, 3),
    data=st.data(),
)
def test_every_group_looks_the_same(a, h, p, num_ports, data):
    """Both ends moved by a group: the same route, moved by a group. And names lead back to rows."""
    groups = data.draw(st.integers(1, a * h + 1))
    laid = small(a, h, p, groups, num_ports)
    table = ResourceTable(laid.blocks)
    num_nodes = a * p * groups
    source, destination = (np.array([data.draw(st.integers(0, num_nodes - 1))]) for _ in range(2))
    if source == destination:
        return
    port = np.array([data.draw(st.integers(0, num_ports - 1))])
    rows = laid.path(source, port, destination, port)[0]
    shifted = laid.path((source + a * p) % num_nodes, port, (destination + a * p) % num_nodes, port)[0]
    one, other = table.names(rows[rows >= 0])[1:-1], table.names(shifted[shifted >= 0])[1:-1]
    assert [re.sub(r"group(\d+)", lambda g: f"group{(int(g[1]) + 1) % groups}", name) for name in one] == other
    assert [table.find(table.name(row)) for row in rows[rows >= 0]] == rows[rows >= 0].tolist()


def test_left_out_the_numbers_are_balanced():
    laid = lay(1000, 4)  # 64 ports: h = 16, a port of 16 nodes, 32 routers, four to a node
    assert (laid.path.nodes_per_router, laid.path.rails, laid.path.routers, laid.path.groups) == (16, 4, 32, 8)
    assert laid.path.links == 64  # 512 global ports over seven groups are 73, of which 64 go round evenly
    assert laid.blocks[-1].num_links == 2
    assert "shortest routes" in laid.notes[0]
    assert lay(4, 4, rails=1).notes == ()


def test_ports_of_a_node_spread_over_routers_or_share_one(wire, names):
    given = {"routers_per_group": 4, "nodes_per_router": 2, "global_links": 2}
    spread = wire(dragonfly, 12, num_gpus=2, **given)  # two routers to a node: four nodes a group
    assert names(spread, 1, 3)[2:-2] == []
    assert names(spread, 1, 4)[2:-2] == ["group0/router1/local0"]
    assert names(spread, 1, 5)[2:-2] == ["group0/router1/local1"]
    shared = wire(dragonfly, 12, num_gpus=2, rails=1, **given)
    assert names(shared, 0, 4)[2:-2] == names(shared, 1, 5)[2:-2] == ["group0/router0/local0"]


def test_a_machine_wired_for_more_groups_has_narrower_links_between_each_two():
    few, many = small(4, 2, 1, 2), small(4, 2, 1, 9, num_nodes=8)
    assert (few.path.links, many.path.links) == (8, 1)
    assert many.blocks[-1].shape == (2, 8, 1)


def test_latency_counts_each_router_once(wire, names):
    topology = wire(dragonfly, 36, routers_per_group=4, nodes_per_router=1, global_links=2)
    latency = np.append(topology.resources.latency_ns, 0)
    hops = {}
    for destination in range(1, 36):
        rows = topology.route(np.array([0]), np.array([destination]))
        routers = sum("group" in name for name in names(topology, 0, destination)) + 1
        hops[routers] = latency[rows].sum()
    assert hops == {n: 2 * 300 + 2 * 1000 + 400 * n for n in (2, 3, 4)}


@pytest.mark.parametrize(
    ("num_nodes", "arguments", "faults"),
    [
        (8, {"routers_per_group": 0, "global_links": 0}, [("fabric.routers_per_group", 1), ("fabric.global_links", 1)]),
        (0, {"local_links": 0}, [("nodes", 1), ("fabric.local_links", 1)]),
        (8, {"radix": 8, "routers_per_group": 8, "global_links": 2, "nodes_per_router": 1}, [("fabric.radix", 10)]),
        (8, {"routers_per_group": 4, "global_links": 2, "rails": 2}, [("fabric.rails", 1)]),
        (99, {"routers_per_group": 2, "nodes_per_router": 1, "global_links": 1}, [("nodes", 6)]),
        (6, {"routers_per_group": 2, "nodes_per_router": 1, "global_links": 1, "groups": 9}, [("fabric.groups", 3)]),
        (6, {"routers_per_group": 2, "nodes_per_router": 1, "global_links": 1, "groups": 2}, [("fabric.groups", 3)]),
        (
            8,
            {"routers_per_group": 2, "nodes_per_router": 2, "global_links": 8, "group_links": 99},
            [("fabric.group_links", 16)],
        ),
        (
            8,
            {"routers_per_group": 2, "nodes_per_router": 2, "global_links": 8, "group_links": 5},
            [("fabric.group_links", 4)],
        ),
    ],
)
def test_what_does_not_fit_names_the_nearest_that_does(num_nodes, arguments, faults):
    with pytest.raises(BadInput) as error:
        lay(num_nodes, **arguments)
    assert [(fault.key, fault.nearest) for fault in error.value.faults] == faults


def test_131072_gpus_take_few_arrays_and_little_time(wire):
    begin = time.process_time()
    topology = wire(dragonfly, 16384, num_gpus=8)
    device = np.arange(topology.num_devices)
    rows = topology.route(device, device[::-1].copy())
    assert time.process_time() - begin < 3
    assert (rows[:, :2] >= 0).all()
    assert len(topology.resources.blocks) < 30
