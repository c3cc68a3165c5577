import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.workload.mesh import Mesh

AXES = ("tp", "cp", "dp", "pp")
MESHES = st.builds(
    lambda names, sizes: Mesh(names=tuple(names), sizes=tuple(sizes)),
    st.permutations(AXES),
    st.lists(st.integers(1, 4), min_size=4, max_size=4),
)


@given(MESHES)
def test_groups_partition_the_ranks(mesh: Mesh) -> None:
    for axis in AXES:
        groups = mesh.groups(axis)
        assert sorted(groups.ravel()) == list(range(mesh.num_ranks))
        for other in AXES:
            along = mesh.coordinate(other)[groups]
            if other == axis:
                assert (along == np.arange(mesh.size(axis))).all()
            else:
                assert (along == along[:, :1]).all()


@given(MESHES)
def test_coordinates_name_one_rank(mesh: Mesh) -> None:
    coordinates = {axis: mesh.coordinate(axis) for axis in AXES}
    rank = np.zeros(mesh.num_ranks, np.int64)
    for axis in reversed(mesh.names):
        rank = rank * mesh.size(axis) + coordinates[axis]
    assert (rank == np.arange(mesh.num_ranks)).all()


def test_the_first_axis_is_innermost() -> None:
    mesh = Mesh(names=AXES, sizes=(2, 1, 3, 2))
    assert mesh.groups("tp")[0].tolist() == [0, 1]
    assert mesh.groups("dp")[0].tolist() == [0, 2, 4]
    assert mesh.groups("pp")[0].tolist() == [0, 6]


@pytest.mark.parametrize(
    ("names", "sizes", "rule"),
    [(("tp", "tp"), (1, 1), "different"), (("tp",), (1, 2), "one for each"), (("tp",), (0,), "at least 1")],
)
def test_refuses(names: tuple[str, ...], sizes: tuple[int, ...], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        Mesh(names=names, sizes=sizes)
