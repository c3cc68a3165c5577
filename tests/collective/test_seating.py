"""Groups that sit alike have one shape; rings come from the links between the members' GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import ceil
from types import ModuleType

import networkx as nx
import numpy as np
import pytest

import clustersim as cs
from clustersim.collective.seating import _distinct, seatings
from clustersim.collective.traffic import GroupShape
from clustersim.topology.meshes import Meshes, meshes
from clustersim.topology.topology import Topology

GB = 10**9


@cache
def nodes_of(card: str, num_nodes: int) -> tuple[Topology, Meshes | None]:
    topology = cs.load_topology(card, nodes=num_nodes)
    return topology, meshes(topology)


def seated(card: str, num_nodes: int, *groups: Sequence[int]) -> tuple[list[GroupShape], list[int]]:
    shapes, shape_of = seatings(*nodes_of(card, num_nodes), np.array(groups))
    return shapes, shape_of.tolist()


def uses(shape: GroupShape) -> dict[tuple[int, int], int]:
    """Rings on each way from one member to another."""
    assert shape.rings is not None
    pairs = [(i, int(j)) for ring in shape.rings for i, j in enumerate(ring)]
    return {pair: pairs.count(pair) for pair in pairs if pair[0] != pair[1]}


def test_behind_switches_a_shape_is_who_shares_a_node(star: ModuleType) -> None:
    cluster = star.cluster(4, 4)
    groups = np.array([[0, 1, 4, 5], [2, 3, 14, 15], [0, 4, 1, 5], [4, 5, 6, 7]])
    shapes, shape_of = seatings(cluster, meshes(cluster), groups)
    assert [shapes[k].node.tolist() for k in shape_of] == [[0, 0, 2, 2], [0, 0, 2, 2], [0, 1, 0, 1], [0, 0, 0, 0]]
    assert len(shapes) == 3
    assert all(shape.rings is None for shape in shapes)


def test_groups_joined_alike_share_a_shape_wherever_they_sit() -> None:
    halves, of = seated("dgx1-v100", 2, [0, 1, 2, 3], [4, 5, 6, 7], [12, 13, 14, 15], [0, 1, 4, 5])
    assert of[0] == of[1] == of[2] != of[3]
    assert len(halves) == 2
    quads, _ = seated("hgx-mi300x", 1, *combinations(range(8), 4))
    assert len(quads) == 1


@pytest.mark.parametrize("card", ["dgx1-v100", "frontier", "hgx-mi300x", "perlmutter"])
def test_rings_cross_direct_links_only_and_none_more_than_its_share(card: str) -> None:
    topology, found = nodes_of(card, 1)
    assert found is not None
    rng = np.random.default_rng(0)
    for size in range(3, topology.num_devices + 1):
        for _ in range(5):
            members = rng.permutation(topology.num_devices)[:size]
            (shape,), _ = seatings(topology, found, members[None])
            links = found.num_links[np.ix_(members, members)]
            if shape.rings is not None:
                share = 2 if len(shape.rings) > links.sum(axis=1).min() else 1
                assert all(count <= share * links[pair] for pair, count in uses(shape).items())


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([0, 1], id="a pair"),
        pytest.param([0, 3, 8, 11, 16, 19], id="pairs on three nodes"),
        pytest.param([0, 8, 16], id="one a node"),
        pytest.param([0, 1, 6], id="GPUs 1 and 6 have no link"),
    ],
)
def test_where_there_is_one_order_there_are_no_rings(members: list[int]) -> None:
    (shape,), _ = seated("dgx1-v100", 3, members)
    assert shape.rings is None


def test_groups_of_pairs_are_not_told_apart_by_their_gpus() -> None:
    shapes, of = seated("dgx1-v100", 3, *([a, a + b, 8 + a, 8 + a + b] for a in range(4) for b in range(1, 4)))
    assert (len(shapes), of) == (1, [0] * 12)


def test_nodes_with_unequally_many_rings_have_each_as_often_as_makes_them_equal() -> None:
    (shape,), _ = seated("hgx-mi300x", 3, [0, 8, 1, 9, 2, 10, 11, 16])
    assert shape.rings is not None
    assert shape.rings.shape == (6, 8)
    three, four = (0, 2, 4), (1, 3, 5, 6)
    expected = {(a, b): 3 for a in three for b in three if a != b}  # two orders of three, each three times
    expected |= {(a, b): 2 for a in four for b in four if a != b}  # six of four, over twelve ways
    assert uses(shape) == expected


def test_nodes_of_a_graph_have_the_rings_of_their_own_links() -> None:
    graph: nx.Graph[object] = nx.Graph()
    for node, edges in enumerate([[(0, 1), (1, 2), (2, 3), (3, 0)], [(0, 2), (2, 1), (1, 3), (3, 0)]]):
        graph.add_nodes_from(((node, gpu) for gpu in range(4)), role="gpu", node=node)
        graph.add_edges_from(((node, a), (node, b)) for a, b in edges)
    graph.add_edge((0, 0), (1, 0))
    nx.set_edge_attributes(graph, {edge: {"bandwidth": 1e9, "latency": 0.0} for edge in graph.edges})
    card = cs.load_topology("dgx1-v100")
    topology = Topology.from_networkx(graph, gpu=card.gpus[0], cpu=card.cpus[0])
    shapes, shape_of = seatings(topology, meshes(topology), np.array([[0, 1, 2, 3], [4, 5, 6, 7]]))
    square, twisted = (shapes[k] for k in shape_of)
    assert set(uses(square)) == {(a, (a + 1) % 4) for a in range(4)} | {((a + 1) % 4, a) for a in range(4)}
    assert set(uses(twisted)) == {(a, b) for a in (0, 1) for b in (2, 3)} | {(b, a) for a in (0, 1) for b in (2, 3)}


def test_rows_of_one_hash_are_told_apart() -> None:
    first, second = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, size=2)
    rows = np.array([[second, -first], [0, 0], [second, -first], [5, 5]])
    distinct, of = _distinct(rows)
    assert len(distinct) == 3
    assert (distinct[of] == rows).all()


def all_reduce_ns(star: ModuleType, card: str, num_nodes: int, members: Sequence[int], nbytes: int) -> int:
    topology = replace(nodes_of(card, num_nodes)[0], protocols={})  # links alone, without a library's overheads
    program = star.program(star.collective("all_reduce", nbytes))
    n = len(members)
    job = cs.Job(
        name="ring",
        programs=(program,),
        program_of=np.zeros(n, np.int64),
        devices=np.array(members),
        families=(star.groups("dp", range(n)),),
    )
    return int(cs.simulate(topology, job).trace["end_ns"].max())


@pytest.mark.parametrize(
    ("card", "members", "links", "link"),
    [
        ("dgx1-v100", range(8), 6, "node0/gpu0/nvlink.gpu1"),
        ("dgx1-v100", [0, 1, 2, 3], 4, "node0/gpu0/nvlink.gpu1"),
        ("hgx-mi300x", range(8), 7, "node0/gpu0/xgmi.gpu1"),
        ("hgx-mi300x", [1, 7, 4, 2], 3, "node0/gpu0/xgmi.gpu1"),
    ],
)
def test_an_all_reduce_runs_at_the_bandwidth_of_all_links_that_rings_can_use(
    star: ModuleType, card: str, members: Sequence[int], links: int, link: str
) -> None:
    """2(n-1)/n·S over so many single links, beside the latency of the steps."""
    resources = nodes_of(card, 1)[0].resources
    n, nbytes = len(members), 8 * GB
    ns = all_reduce_ns(star, card, 1, members, nbytes)
    seconds = 2 * (n - 1) / n * nbytes / (links * resources.capacity[resources.find(link)])
    steps_ns = 2 * (n - 1) * int(resources.latency_ns[resources.find(link)])
    assert 0 <= ns - ceil(seconds * 1e9) - steps_ns < 20_000  # the launch of a kernel


def test_over_meshes_the_nics_set_the_pace(star: ModuleType) -> None:
    """4 nodes of 4 A100, a NIC each: T/4 through every NIC, and three links of four a pair are no hindrance."""
    topology, _ = nodes_of("perlmutter", 4)
    nic = topology.resources.capacity[topology.resources.find("node0/nic0.tx")]
    ns = all_reduce_ns(star, "perlmutter", 4, range(16), 8 * GB)
    assert ns == pytest.approx(2 * 15 / 16 * 8 * GB / (4 * nic) * 1e9, rel=1e-3)


def test_what_the_switches_can_do_is_in_the_shape() -> None:
    plain, _ = seated("dgx-a100", 2, [0, 8], [0, 1])
    assert [(s.multicast, s.in_network) for s in plain] == [(False, False)] * 2
    able, _ = seated("dgx-h100", 2, [0, 8], [0, 1])
    assert [(s.multicast, s.in_network) for s in able] == [(True, False)] * 2
    sharp = cs.load_topology("dgx-h100", nodes=2, **{"fabric.sharp": True})
    shapes, _ = seatings(sharp, None, np.array([[0, 8]]))
    assert (shapes[0].multicast, shapes[0].in_network) == (True, True)


def test_groups_with_and_without_multicast_are_kept_apart() -> None:
    cluster = cs.load_topology("dgx-h100", nodes=3)
    half = replace(cluster, multicast=np.repeat([True, False, True], 8))
    shapes, shape_of = seatings(half, None, np.array([[0, 1], [8, 9], [16, 17], [7, 8]]))
    assert [shapes[k].multicast for k in shape_of] == [True, False, True, False]
    assert len(shapes) == 3
