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
LINE = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("links", "count"), [(np.array(HYBRID_CUBE_MESH), 6), (FULL_8, 6), (FULL_4, 12), (FULL_8[:3, :3], 2)]
)
def test_rings_use_each_link_once_a_direction(links, count):
    found = rings(links)
    assert found.shape == (count, len(links))
    used = np.zeros_like(links)
    for ring in found.tolist():
        assert sorted(ring) == list(range(len(links)))
        for a, b in pairwise([*ring, ring[0]]):
            used[a, b] += 1
    assert (used <= links).all()


@pytest.mark.parametrize("links", [PAIR, LINE, np.zeros((8, 8), dtype=np.int64), 1 - np.eye(40, dtype=np.int64)])
def test_without_a_closed_way_the_order_stays(links):
    assert rings(links).tolist() == [list(range(len(links)))]


def test_links_are_direct_only_where_nothing_is_between(make, parts):
    assert not direct_links(make(2), np.arange(16)).any()
    node = xgmi_mesh(gpu=parts.gpu, num_links=HYBRID_CUBE_MESH, link=parts.nvlink, host=parts.host)
    members = np.array([0, 3, 5, 4])
    links = direct_links(connect(node, None, name="mesh"), members)
    assert links.tolist() == np.array(HYBRID_CUBE_MESH)[np.ix_(members, members)].tolist()
