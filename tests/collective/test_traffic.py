"""Shapes of groups."""

import numpy as np
import pytest

from clustersim.collective.traffic import GroupShape


def test_members_by_node():
    shape = GroupShape(node=np.array([0, 1, 0, 1, 0]))
    assert shape.num_members == 5
    assert [members.tolist() for members in shape.nodes] == [[0, 2, 4], [1, 3]]


@pytest.mark.parametrize(
    ("node", "rings"),
    [
        pytest.param([0, 0, 0, 0], [[1, 0, 3, 2]], id="two short rings"),
        pytest.param([0, 0, 0, 0], [[1, 2, 3, 0], [1, 2, 0, 0]], id="one member left out"),
        pytest.param([0, 0, 2, 2], [[1, 2, 3, 0]], id="across nodes"),
        pytest.param([0, 1], [[1, 0]], id="across nodes of one member"),
        pytest.param([0, 0, 0], [[1, 2, 3]], id="no such member"),
        pytest.param([0, 0, 0], [[1, 2, -3]], id="negative"),
        pytest.param([0, 0, 0], [[1, 0]], id="too few members"),
        pytest.param([0, 0], [1, 0], id="no matrix"),
        pytest.param([0, 0], np.empty((0, 2), dtype=np.int64), id="none"),
    ],
)
def test_rings_that_do_not_go_round_every_node_are_refused(node, rings):
    with pytest.raises(ValueError, match="rings: each must visit every member of a node once"):
        GroupShape(node=np.array(node), rings=np.array(rings))


def test_rings_of_unequal_interleaved_nodes():
    GroupShape(node=np.array([0, 1, 0, 1, 0, 5]), rings=np.array([[2, 3, 4, 1, 0, 5], [4, 3, 0, 1, 2, 5]]))
