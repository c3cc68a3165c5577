"""Shape of the two trees, and what they put on a member."""

from math import ceil, log2

import numpy as np
import pytest

from clustersim.collective.traffic import GroupShape
from clustersim.collective.tree import double_tree, tree


def nodes(*counts):
    first = np.cumsum(counts) - counts
    return GroupShape(node=np.repeat(first, counts))


@pytest.mark.parametrize("num_nodes", [*range(2, 34), 100, 1000])
def test_two_binary_trees_under_one_root(num_nodes):
    children, parents = double_tree(num_nodes)
    inner = []
    for child, parent in zip(children, parents, strict=True):
        assert sorted(child.tolist()) == list(range(1, num_nodes))
        degree = np.bincount(parent, minlength=num_nodes)
        assert degree[0] == 1
        assert degree.max() <= 2
        above = dict(zip(child.tolist(), parent.tolist(), strict=True))
        for node in above:
            depth = 0
            while node:
                node, depth = above[node], depth + 1
                assert depth <= ceil(log2(num_nodes))
        inner.append(set(parent.tolist()) - {0})
    assert not inner[0] & inner[1]


def test_steps_grow_with_the_logarithm_of_the_nodes():
    inside, between = tree("all_reduce", 1 << 20, nodes(*[8] * 32)).phases
    assert (inside.num_steps, between.num_steps) == (2 * 7, 2 * 5)
    inside, between = tree("broadcast", 1 << 20, nodes(*[8] * 33)).phases
    assert (inside.num_steps, between.num_steps) == (7 + 7, 6)


def test_a_nic_carries_at_most_twice_its_lane():
    nbytes = 8 * 1000
    _, between = tree("all_reduce", nbytes, nodes(*[8] * 16)).phases
    sent = np.bincount(between.source, weights=between.nbytes)
    assert sent.max() == 2 * nbytes / 8


def test_on_one_node_the_chains_turn_so_that_members_are_equal():
    (phase,) = tree("all_reduce", 8000, nodes(8)).phases
    assert set(phase.nbytes.tolist()) == {7000}
    assert np.bincount(phase.source).tolist() == [2] * 8


def test_chains_over_several_rings_weigh_as_much_as_one():
    """On a link they are no more flows than a single chain of all the bytes."""
    node = np.repeat([0, 4, 8], 4)
    orders = np.array([[1, 2, 3, 0], [3, 0, 1, 2]])
    rings = np.array([np.concatenate([first + order for first in (0, 4, 8)]) for order in orders])
    on_mesh = tree("all_reduce", 1 << 20, GroupShape(node=node, rings=rings))
    assert on_mesh.num_flows == tree("all_reduce", 1 << 20, nodes(4, 4, 4)).num_flows
    (chains,) = tree("all_reduce", 1 << 20, GroupShape(node=node[:4], rings=rings[:, :4])).phases
    assert chains.nbytes.tolist() == [3 * (1 << 20) // 8] * 16  # up and down, over four edges in each direction


def test_two_nodes_of_one_member_exchange_the_payload_once_each_way():
    (phase,) = tree("all_reduce", 1000, nodes(1, 1)).phases
    assert np.bincount(phase.source, weights=phase.nbytes).tolist() == [1000, 1000]
