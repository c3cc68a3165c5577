"""The order of a group over nodes."""

import numpy as np

from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape


def test_nodes_in_order_of_their_first_member():
    layout = Layout.of(GroupShape(node=np.array([0, 1, 0, 3, 1, 3, 0])))
    assert layout.order.tolist() == [0, 2, 6, 1, 4, 3, 5]
    assert layout.count.tolist() == [3, 2, 2]
    assert layout.lanes().tolist() == [[0, 2], [1, 4], [3, 5]]


def used(edges):
    source, destination, uses = (numbers.tolist() for numbers in edges)
    assert len(set(zip(source, destination, strict=True))) == len(source)
    return dict(zip(zip(source, destination, strict=True), uses, strict=True))


def test_cycle_goes_round_each_node():
    layout = Layout.of(GroupShape(node=np.array([0, 1, 0, 3, 1, 0])))
    assert used(layout.cycle()) == {(0, 2): 1, (2, 5): 1, (5, 0): 1, (1, 4): 1, (4, 1): 1}


def test_each_path_leaves_out_the_edge_into_its_start():
    layout = Layout.of(GroupShape(node=np.repeat([0, 3], [3, 2])))
    assert layout.starts().tolist() == [1, 1, 0, 1, 1]
    assert used(layout.paths(layout.starts())) == {(0, 1): 1, (1, 2): 2, (2, 0): 1, (3, 4): 1, (4, 3): 1}
    assert used(layout.paths(np.array([0, 2, 0, 1, 1]))) == {(1, 2): 2, (2, 0): 2, (3, 4): 1, (4, 3): 1}


def test_edges_no_path_uses_are_left_out():
    layout = Layout.of(GroupShape(node=np.repeat([0, 2], [2, 1])))
    assert used(layout.paths(layout.starts())) == {(0, 1): 1}


def test_paths_go_on_from_the_member_before_the_one_they_entered_at():
    layout = Layout.of(GroupShape(node=np.repeat([0, 4, 6], [4, 2, 3])))
    assert used(layout.crossings()) == {(0, 4): 1, (3, 5): 1, (4, 6): 1, (5, 7): 1, (6, 0): 1, (8, 1): 1}


def test_rings_of_one_pair_are_one_edge():
    rings = np.array([[1, 2, 0, 4, 3], [2, 0, 1, 4, 3], [1, 2, 0, 4, 3]])
    layout = Layout.of(GroupShape(node=np.repeat([0, 3], [3, 2]), rings=rings))
    assert layout.num_rings == 3
    there, back = {(0, 1): 2, (1, 2): 2, (2, 0): 2}, {(0, 2): 1, (2, 1): 1, (1, 0): 1}
    assert used(layout.cycle()) == {**there, **back, (3, 4): 3, (4, 3): 3}
    # lanes begin at 0, 1, 3 and 4: a ring leaves out one of its two paths on each edge into one of these
    paths = {**there, **back, (2, 0): 2, (1, 2): 4, (0, 2): 2, (3, 4): 3, (4, 3): 3}
    assert used(layout.paths(layout.starts())) == paths
    # before 0 and 1 come 2 and 0 in the first ring, 1 and 2 in its reverse; 2 is on no lane and takes the free one
    crossings = {(0, 3): 2, (2, 4): 2, (1, 4): 1, (2, 3): 1, (3, 0): 3, (4, 1): 3}
    assert used(layout.crossings()) == crossings


def test_members_keep_their_group_order_in_large_groups_too():
    num_nodes, m = 50, 100
    layout = Layout.of(GroupShape(node=np.tile(np.arange(num_nodes), m)))
    assert (np.diff(layout.order.reshape(num_nodes, m), axis=1) == num_nodes).all()
