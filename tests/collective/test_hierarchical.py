"""Parts and limits of the hierarchical algorithm."""

import numpy as np
import pytest

from clustersim.collective.hierarchical import hierarchical
from clustersim.collective.traffic import GroupShape
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
