"""Rings over the links of a mesh."""

from itertools import pairwise

import numpy as np
import pytest

from clustersim.topology.cluster import connect
from clustersim.topology.mesh import HYBRID_CUBE_MESH, xgmi_mesh
from clustersim.topology.rings import direct_links, rings

PAIR = np.array([[0, 2], [2, 0]])
FULL_8 = 1 - np.eye(8, dtype=np.int64)
FULL_4 = 4 * (1 - np.eye(4, dtype=np.int64))
FRONTIER = np.array(
    [
        [0, 4, 1, 0, 0, 0, 2, 0],
        [4, 0, 0, 1, 0, 1, 0, 0],
        [1, 0, 0, 4, 2, 0, 0, 0],
        [0, 1, 4, 0, 0, 0, 0, 1],
        [0, 0, 2, 0, 0, 4, 1, 0],
        [0, 1, 0, 0, 4, 0, 0, 1],
        [2, 0, 0, 0, 1, 0, 0, 4],
        [0, 0, 0, 1, 0, 1, 4, 0],
    ]
)
LINE = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("links", "count", "share"),
    [
        pytest.param(np.array(HYBRID_CUBE_MESH), 6, 1, id="8 V100"),
        pytest.param(FULL_4, 12, 1, id="4 A100"),
        pytest.param(
            FRONTIER, 4, 1, id="8 MI250X dies: five links join GPUs 0 and 1 to the rest, and a ring takes two"
        ),
        pytest.param(FULL_8, 14, 2, id="8 MI300X"),
        pytest.param(FULL_8[:4, :4], 6, 2, id="4 MI300X"),
        pytest.param(FULL_8[:3, :3], 2, 1, id="3 MI300X"),
    ],
)
def test_rings_use_each_link_once_or_twice_a_direction(links, count, share):
    found = rings(links)
    assert found.shape == (count, len(links))
    used = np.zeros_like(links)
    for ring in found.tolist():
        assert sorted(ring) == list(range(len(links)))
        for a, b in pairwise([*ring, ring[0]]):
            used[a, b] += 1
    assert (used <= share * links).all()
    assert (used == used.T).all()


def test_a_node_of_mi250x_has_the_rings_that_rccl_has_for_it():
    """``src/graph/rome_models.cc``, of the same links: these two orders and their reverses."""
    there = {(0, 1, 3, 2, 4, 5, 7, 6), (0, 1, 5, 4, 2, 3, 7, 6)}
    back = {(order[0], *reversed(order[1:])) for order in there}
    assert set(map(tuple, rings(FRONTIER).tolist())) == there | back


@pytest.mark.parametrize("links", [PAIR, LINE, np.zeros((8, 8), dtype=np.int64), 1 - np.eye(40, dtype=np.int64)])
def test_without_a_closed_way_the_order_stays(links):
    assert rings(links).tolist() == [list(range(len(links)))]


def test_links_are_direct_only_where_nothing_is_between(make, parts):
    assert not direct_links(make(2), np.arange(16)).any()
    node = xgmi_mesh(gpu=parts.gpu, num_links=HYBRID_CUBE_MESH, link=parts.nvlink, host=parts.host)
    members = np.array([0, 3, 5, 4])
    links = direct_links(connect(node, None, name="mesh"), members)
    assert links.tolist() == np.array(HYBRID_CUBE_MESH)[np.ix_(members, members)].tolist()
