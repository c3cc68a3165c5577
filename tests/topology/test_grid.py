"""Torus, mesh and ring: shortest walks along one axis after another, loads in closed form, symmetry, bad sides."""

import re
import time
from collections import Counter
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.faults import BadInput
from clustersim.hardware.link import Link
from clustersim.hardware.nic import NIC
from clustersim.topology.fabric import Ports
from clustersim.topology.grid import mesh, ring, torus
from clustersim.topology.resources import ResourceTable

LINK = Link(name="link", bandwidth=40e9, latency=100e-9)
NIC_ = NIC(name="nic", bandwidth=50e9, efficiency=0.9, latency=1e-6)
HOP = re.compile(r"at([\d-]+)/([xyz])\.(plus|minus)")


def lay(fabric, num_nodes, num_ports=1, **arguments):
    return fabric(ports=Ports(nic=NIC_, of_gpu=tuple(range(num_ports))), link=LINK, num_nodes=num_nodes, **arguments)


def all_pairs(fabric, num_nodes, num_ports=1):
    """(source node, destination node, routes) of every two nodes, from port to equal port."""
    source, destination = np.nonzero(~np.eye(num_nodes, dtype=bool))
    source, destination = np.tile(source, num_ports), np.tile(destination, num_ports)
    port = np.repeat(np.arange(num_ports), len(source) // num_ports)
    return source, destination, fabric.path(source, port, destination, port)


def walk(name, dims):
    """Where a hop called ``name`` leads from and to, as coordinates."""
    where, axis, way = HOP.fullmatch(name).groups()
    low = tuple(int(part) for part in where.split("-"))
    axis = "xyz".index(axis)
    high = tuple((c + 1) % dims[axis] if i == axis else c for i, c in enumerate(low))
    return (low, high) if way == "plus" else (high, low)


@pytest.mark.parametrize("dims", [(5,), (2,), (4, 3), (2, 2), (4, 1, 6), (3, 4, 2)])
@pytest.mark.parametrize("fabric", [torus, mesh])
def test_routes_are_shortest_walks_of_the_grid(fabric, dims):
    """Against the grid of networkx, whose rings of two have one edge as ours have one bundle."""
    laid = lay(fabric, int(np.prod(dims)), dims=dims)
    graph = nx.grid_graph(dims[::-1], periodic=fabric is torus)
    if len(dims) == 1:
        graph = nx.relabel_nodes(graph, {node: (node,) for node in graph})
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    table = ResourceTable(laid.blocks)
    for source, destination, rows in zip(*all_pairs(laid, int(np.prod(dims))), strict=True):
        here = tuple(int(c) for c in np.unravel_index(source, dims))
        goal = tuple(int(c) for c in np.unravel_index(destination, dims))
        first, *hops, last = table.names(rows[rows >= 0])
        assert (first, last) == (f"node{source}/nic0.tx", f"node{destination}/nic0.rx")
        assert len(hops) == distance[here][goal]
        assert [HOP.fullmatch(name)[2] for name in hops] == sorted(HOP.fullmatch(name)[2] for name in hops)
        for name in hops:
            start, end = walk(name, dims)
            assert start == here
            assert graph.has_edge(start, end)
            here = end
        assert here == goal


@pytest.mark.parametrize(
    ("dims", "num_ports"), [((5,), 1), ((8,), 1), ((6,), 2), ((3, 5), 1), ((4, 4, 4), 1), ((6, 4), 2), ((2, 8), 1)]
)
def test_uniform_traffic_loads_all_links_of_an_axis_alike(dims, num_ports):
    """A ring of n carries floor(n² / 4) hops a line, over 2n links, for each node of the other axes: n² / 8 each."""
    num_nodes = int(np.prod(dims))
    laid = lay(torus, num_nodes, num_ports, dims=dims)
    rows = all_pairs(laid, num_nodes, num_ports)[2]
    load = np.bincount(rows[rows >= 0], minlength=sum(block.count for block in laid.blocks))
    first = np.concatenate(([0], np.cumsum([block.count for block in laid.blocks])))
    for number, block in enumerate(laid.blocks[2:], start=2):
        n = dims["xyz".index(block.kind[-1])]
        one = load[first[number] : first[number + 1]]
        assert len(set(one.tolist())) == 1
        assert one[0] * n * 2 // block.num_links == num_ports * (n * n // 4) * num_nodes


def test_a_ring_of_six_with_one_port_is_even_within_one_route():
    laid = lay(ring, 6)
    rows = all_pairs(laid, 6)[2]
    load = np.bincount(rows[rows >= 0])[12:]
    assert sorted(set(load.tolist())) == [4, 5]
    assert load.mean() == 36 / 8


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_routes_move_with_their_ends(data):
    """By two along any axis; names move likewise."""
    dims = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    num_nodes = int(np.prod(dims))
    laid = lay(torus, num_nodes, 3, dims=dims)
    axis = data.draw(st.integers(0, len(dims) - 1))
    ends = np.array(data.draw(st.lists(st.integers(0, num_nodes - 1), min_size=2, max_size=2, unique=num_nodes > 1)))
    if ends[0] == ends[1]:
        return
    port = np.array([data.draw(st.integers(0, 2))])
    moved = [np.array(np.unravel_index(ends, dims))[i] + 2 * (i == axis) for i in range(len(dims))]
    moved = np.ravel_multi_index(tuple(c % n for c, n in zip(moved, dims, strict=True)), dims)
    table = ResourceTable(laid.blocks)
    one, other = (table.names(laid.path(e[:1], port, e[1:], port)[0])[1:-1] for e in (ends, moved))

    def move(name):
        where, rest = name.removeprefix("at").split("/")
        at = [int(c) for c in where.split("-")]
        # the one bundle of a ring of two keeps its number
        at[axis] = (at[axis] + 2) % dims[axis] if dims[axis] > 2 else at[axis]
        return f"at{'-'.join(map(str, at))}/{rest}"

    assert [move(name) for name in one] == other


def test_a_ring_of_two_is_one_bundle_of_both_links():
    laid = lay(torus, 2, dims=(2,), num_links=3)
    plus, minus = laid.blocks[2:]
    assert (plus.count, plus.num_links, plus.capacity) == (1, 6, 40e9 * 0.9 * 6)
    assert minus.capacity == plus.capacity
    assert lay(mesh, 2, dims=(2,)).blocks[2].num_links == 1


def test_sides_left_out_are_the_most_even():
    assert lay(torus, 64).path.dims == (4, 4, 4)
    assert lay(torus, 12).path.dims == (3, 2, 2)
    assert lay(torus, 7).path.dims == (7, 1, 1)
    assert lay(mesh, 12).path.dims == (4, 3)
    assert lay(torus, 12, num_dims=1).path.dims == (12,)


def test_latency_and_bandwidth_are_those_of_links_and_cards(wire, names):
    topology = wire(torus, 27)
    latency = np.append(topology.resources.latency_ns, 0)
    rows = topology.route(np.array([0]), np.array([13]))  # one hop along each axis
    assert names(topology, 0, 13)[2:-2] == ["at0-0-0/x.plus", "at1-0-0/y.plus", "at1-1-0/z.plus"]
    assert latency[rows].sum() == 2 * 300 + 2 * 1000 + 3 * 100


@pytest.mark.parametrize(
    ("fabric", "num_nodes", "arguments", "faults"),
    [
        (torus, 64, {"dims": (4, 4, 3)}, [("fabric.dims", [4, 4, 4])]),
        (torus, 64, {"dims": (0, 8, 8)}, [("fabric.dims", [1, 8, 8])]),
        (torus, 64, {"dims": ()}, [("fabric.dims", [64])]),
        (torus, 64, {"dims": (2, 2, 2, 8)}, [("fabric.dims", [4, 4, 4])]),
        (torus, 2048, {"dims": (2048,)}, [("fabric.dims", [16, 16, 8])]),
        (ring, 2000, {}, [("nodes", None)]),
        (mesh, 4, {"num_dims": 4}, [("fabric.num_dims", 3)]),
        (torus, 0, {"num_links": 0}, [("nodes", 1), ("fabric.num_links", 1)]),
    ],
)
def test_what_is_wrong_comes_at_once_with_the_nearest_legal_value(fabric, num_nodes, arguments, faults):
    with pytest.raises(BadInput) as error:
        lay(fabric, num_nodes, **arguments)
    assert [(fault.key, fault.nearest) for fault in error.value.faults] == faults


def test_any_order_of_sides_is_as_good():
    for dims in permutations((2, 3, 4)):
        laid = lay(torus, 24, dims=dims)
        assert Counter(block.count for block in laid.blocks[2:]) == Counter({12: 2, 24: 4})


def test_131072_gpus_take_few_arrays_and_little_time(wire):
    begin = time.process_time()
    topology = wire(torus, 16384, num_gpus=8, dims=(32, 32, 16))
    device = np.arange(topology.num_devices)
    rows = topology.route(device, (device + 8) % topology.num_devices)
    assert time.process_time() - begin < 3
    assert topology.num_devices == 131_072
    assert (rows[:, :2] >= 0).all()
    assert len(topology.resources.blocks) < 30
