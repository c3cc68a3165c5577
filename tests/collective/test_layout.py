"""The order of a group over nodes."""

import numpy as np

from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape


def test_nodes_in_order_of_their_first_member():
    layout = Layout.of(GroupShape(node=np.array([0, 1, 0, 3, 1, 3, 0])))
    assert layout.order.tolist() == [0, 2, 6, 1, 4, 3, 5]
    assert layout.count.tolist() == [3, 2, 2]
    assert layout.lanes().tolist() == [[0, 2], [1, 4], [3, 5]]
    assert layout.last().tolist() == [6, 4, 5]


def test_cycle_goes_round_each_node():
    source, destination, lane = Layout.of(GroupShape(node=np.array([0, 1, 0, 3, 1, 0]))).cycle()
    assert list(zip(source.tolist(), destination.tolist(), lane.tolist(), strict=True)) == [
        (0, 2, 1),
        (2, 5, 2),
        (5, 0, 0),
        (1, 4, 1),
        (4, 1, 0),
    ]


def test_each_path_leaves_out_the_edge_into_its_start():
    source, destination, uses = Layout.of(GroupShape(node=np.repeat([0, 3], [3, 2]))).paths()
    used = dict(zip(zip(source.tolist(), destination.tolist(), strict=True), uses.tolist(), strict=True))
    assert used == {(0, 1): 1, (1, 2): 2, (2, 0): 1, (3, 4): 1, (4, 3): 1}


def test_edges_no_path_uses_are_left_out():
    source, destination, _ = Layout.of(GroupShape(node=np.repeat([0, 2], [2, 1]))).paths()
    assert (source.tolist(), destination.tolist()) == ([0], [1])


def test_members_keep_their_group_order_in_large_groups_too():
    num_nodes, m = 50, 100
    layout = Layout.of(GroupShape(node=np.tile(np.arange(num_nodes), m)))
    assert (np.diff(layout.order.reshape(num_nodes, m), axis=1) == num_nodes).all()
