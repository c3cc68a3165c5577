"""Parts and limits of the hierarchical algorithm."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from clustersim.collective.direct import direct
from clustersim.collective.halving_doubling import halving_doubling
from clustersim.collective.hierarchical import Hierarchical, hierarchical
from clustersim.collective.nvls import nvls
from clustersim.collective.ring import ring
from clustersim.collective.sharp import sharp
from clustersim.collective.traffic import GroupShape
from clustersim.collective.tree import tree
from clustersim.faults import BadInput


def grid(num_nodes, m):
    return GroupShape(node=np.repeat(np.arange(num_nodes) * m, m))


def test_all_reduce_has_three_parts_that_follow_one_another():
    nbytes = 4 * 8 * 1000
    traffic = hierarchical("all_reduce", nbytes, grid(4, 8))
    assert not traffic.pipelined
    assert [set(p.nbytes.tolist()) for p in traffic.phases] == [{28_000}, {6_000}, {28_000}]
    assert [p.num_steps for p in traffic.phases] == [7, 6, 7]


@pytest.mark.parametrize(("kind", "steps"), [("all_gather", [3, 7]), ("reduce_scatter", [7, 3])])
def test_the_network_comes_first_in_a_gather_and_last_in_a_scatter(kind, steps):
    assert [p.num_steps for p in hierarchical(kind, 1 << 20, grid(4, 8)).phases] == steps


def test_parts_hand_their_results_over_through_memory():
    """1000 B in 4 blocks: in and out 2000, staging 2 · (received + sent away), 2 · 2 hand-overs of 500."""
    memory = hierarchical("all_reduce", 1000, grid(2, 2)).memory_nbytes
    assert memory.tolist() == [2000 + 2 * 1500 + 2 * 500 + 4 * 500] * 4


def test_unequal_nodes_are_refused():
    with pytest.raises(BadInput, match="equally many members on each node, not 2 to 4"):
        hierarchical("all_reduce", 1000, GroupShape(node=np.repeat([0, 4], [4, 2])))


def test_large_groups_are_arrays():
    inside, between, _ = hierarchical("all_reduce", 10**9, grid(2048, 8)).phases
    assert len(inside.source) == len(between.source) == 16384


def test_all_to_all_gathers_inside_and_exchanges_on_lanes():
    """4 nodes of 8: 7/8 of the payload inside, 3/4 over each NIC, as 24/32 of it in a direct exchange."""
    inside, between = hierarchical("all_to_all", 32_000, grid(4, 8)).phases
    assert set(inside.nbytes.tolist()) == {4000}
    assert set(between.nbytes.tolist()) == {8000}
    assert len(inside.source) == 32 * 7
    assert len(between.source) == 32 * 3
    assert (between.source % 8 == between.destination % 8).all()
    away = direct("all_to_all", 32_000, grid(4, 8)).phases[0]
    leaves = away.source // 8 != away.destination // 8
    assert between.nbytes[between.source == 5].sum() == away.nbytes[leaves & (away.source == 5)].sum()


def test_all_to_all_delivers():
    """Blocks go to the member of the receiver's place, then along the lane: on real blocks, as many as it says."""
    num_nodes, m = 3, 4
    n = num_nodes * m
    at = {(i, j): i for i in range(n) for j in range(n)}
    moved = Counter()
    for (i, j), where in at.items():
        middle = i // m * m + j % m
        for a, b in ((where, middle), (middle, j)):
            if a != b:
                moved[a, b] += 1000
    flows = Counter()
    for phase in hierarchical("all_to_all", n * 1000, grid(num_nodes, m)).phases:
        for a, b, nbytes in zip(phase.source.tolist(), phase.destination.tolist(), phase.nbytes.tolist(), strict=True):
            flows[a, b] += nbytes
    assert flows == moved


def test_any_two_algorithms_nest():
    shape = replace(grid(4, 8), multicast=True, in_network=True)
    mine = Hierarchical(inside=nvls, between=halving_doubling, name="mine")
    traffic = mine("all_reduce", 32_000, shape)
    assert traffic.algorithm == "mine"
    assert not traffic.pipelined
    assert [phase.num_steps for phase in traffic.phases] == [1, 1, 1, 1, 1, 1]
    assert [set(phase.nbytes.tolist()) for phase in traffic.phases] == [{4000}, {2000}, {1000}, {1000}, {2000}, {4000}]
    lane = halving_doubling("all_reduce", 4000, GroupShape(node=np.arange(4))).phases[0]
    assert (traffic.phases[1].source[:4] == 8 * lane.source).all()
    nested = Hierarchical(inside=direct, between=Hierarchical(between=sharp))("all_gather", 32_000, shape)
    assert [phase.tree is None for phase in nested.phases] == [False, True]


def test_each_node_has_its_own_streams():
    shape = replace(grid(4, 8), multicast=True)
    inside = Hierarchical(inside=nvls)("reduce_scatter", 32_000, shape).phases[0]
    streams = set(zip(inside.tree.tolist(), inside.destination.tolist(), strict=True))
    assert len(streams) == len(set(inside.tree.tolist())) == 32


def test_memory_of_separate_parts_is_the_sum_of_theirs():
    """Two nodes of two, 1000 B: each part reads its input and writes its output, besides staging."""
    parts = [
        ring("reduce_scatter", 1000, GroupShape(node=np.zeros(2, dtype=np.int64))),
        ring("all_reduce", 500, GroupShape(node=np.arange(2))),
        ring("all_gather", 1000, GroupShape(node=np.zeros(2, dtype=np.int64))),
    ]
    memory = hierarchical("all_reduce", 1000, grid(2, 2)).memory_nbytes
    assert memory.tolist() == [sum(int(part.memory_nbytes[0]) for part in parts)] * 4
    overlapped = Hierarchical(pipelined=True)("all_reduce", 1000, grid(2, 2))
    assert overlapped.pipelined
    assert overlapped.memory_nbytes.tolist() == [2000 + 2 * 1500 + 2 * 500] * 4


def test_each_part_copies_its_own_block_and_a_fused_one_copies_once():
    """4 nodes of 8, 32,000 B: 4000 inside twice, and 1000 of a lane's 4000."""
    assert hierarchical("all_reduce", 32_000, grid(4, 8)).own_nbytes == 4000 + 1000 + 4000
    assert Hierarchical(pipelined=True)("all_reduce", 32_000, grid(4, 8)).own_nbytes == 4000
    assert hierarchical("all_gather", 32_000, grid(1, 1)).own_nbytes == 0


def test_chunks_do_not_flow_through_an_algorithm_of_separate_steps():
    assert not Hierarchical(between=halving_doubling, pipelined=True)("all_reduce", 1000, grid(4, 2)).pipelined


def test_a_part_that_lacks_the_collective_says_so():
    with pytest.raises(BadInput, match="not a collective of tree"):
        Hierarchical(inside=tree)("all_reduce", 1000, grid(2, 2))


def test_equal_objects_are_equal_algorithms():
    assert Hierarchical() == hierarchical
    assert hash(Hierarchical(inside=nvls)) == hash(Hierarchical(inside=nvls))
    assert Hierarchical(inside=nvls) != hierarchical


def test_a_result_can_say_which_it_was():
    outer = Hierarchical(inside=nvls, between=Hierarchical(name="own"))
    assert repr(outer) == (
        "Hierarchical(inside=nvls, between=Hierarchical(inside=ring, between=ring, exchange=direct, pipelined=False, "
        "name='own'), exchange=direct, pipelined=False, name='hierarchical')"
    )


def test_on_meshes_each_node_has_the_rings_of_its_own_links():
    """Two nodes of three, joined in opposite orders."""
    rings = np.array([[1, 2, 0, 5, 3, 4]])
    shape = GroupShape(node=np.repeat([0, 3], 3), rings=rings)
    inside = hierarchical("all_gather", 6000, shape).phases[1]
    edges = set(zip(inside.source.tolist(), inside.destination.tolist(), strict=True))
    assert edges == {(i, int(rings[0, i])) for i in range(6)}
