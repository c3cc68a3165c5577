"""Direct links: the DGX-1's hybrid cube mesh, meshes of unequal links, full meshes."""

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.cluster import connect
from clustersim.topology.mesh import HYBRID_CUBE_MESH, hybrid_cube_mesh, xgmi_mesh


@pytest.fixture
def cube(parts):
    return connect(hybrid_cube_mesh(gpu=parts.gpu, link=parts.nvlink, host=parts.host), None, name="cube")


def test_every_v100_has_six_links_and_half_of_the_mesh_reaches_across():
    links = np.array(HYBRID_CUBE_MESH)
    assert (links == links.T).all()
    assert (links.sum(axis=1) == 6).all()
    assert links[:4, 4:].sum() == 6  # the cut between the two halves: 2 + 2 + 1 + 1


def test_neighbours_use_their_own_links(cube, names):
    assert names(cube, 0, 3) == ["node0/gpu0/nvlink.gpu3"]
    row = cube.resources.find("node0/gpu0/nvlink.gpu3")
    assert cube.resources.capacity[row] == 40_000_000_000  # two links of 25 GB/s at 0.8
    assert cube.resources.capacity[cube.resources.find("node0/gpu0/nvlink.gpu1")] == 20_000_000_000


def test_others_go_over_one_gpu_the_same_one_both_ways(cube, names):
    for a in range(8):
        for b in range(8):
            if a == b or HYBRID_CUBE_MESH[a][b]:
                continue
            first, second = names(cube, a, b)
            via = int(first[-1])
            assert (first, second) == (f"node0/gpu{a}/nvlink.gpu{via}", f"node0/gpu{via}/nvlink.gpu{b}")
            assert names(cube, b, a) == [f"node0/gpu{b}/nvlink.gpu{via}", f"node0/gpu{via}/nvlink.gpu{a}"]


def test_of_ways_of_equal_length_the_widest_is_taken(parts, names):
    links = [[0, 1, 2, 0], [1, 0, 0, 3], [2, 0, 0, 2], [0, 3, 2, 0]]
    node = xgmi_mesh(gpu=parts.gpu, num_links=links, link=parts.nvlink, host=parts.host)
    topology = connect(node, None, name="square")
    assert names(topology, 0, 3) == ["node0/gpu0/xgmi.gpu2", "node0/gpu2/xgmi.gpu3"]  # 2 and 2, not 1 and 3


@pytest.mark.parametrize(
    ("links", "rule"),
    [
        ([[0, 1], [1]], "square"),
        ([[0, 1], [2, 0]], "must equal the links the other way"),
        ([[1, 1], [1, 0]], "no link to itself"),
        ([[0, -1], [-1, 0]], "must count links"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], "cannot reach"),
    ],
)
def test_a_matrix_that_is_no_mesh_is_refused(parts, links, rule):
    with pytest.raises(BadInput, match=rule):
        xgmi_mesh(gpu=parts.gpu, num_links=links, link=parts.nvlink, host=parts.host)
