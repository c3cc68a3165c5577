import time

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


@given(MESHES, st.booleans(), st.booleans())
def test_families_pair_neighbouring_stages(mesh: Mesh, wrap: bool, tied: bool) -> None:
    families = {f.name: f for f in mesh.families(wrap=wrap, tied=tied)}
    stage, p = mesh.coordinate("pp"), mesh.size("pp")
    assert ("tp" in families) == (mesh.size("tp") > 1)
    assert ("dp" in families) == (mesh.size("dp") > 1)
    assert ("forward" in families) == ("backward" in families) == (p > 1)
    assert ("embedding" in families) == (p > 1 and tied)
    if p > 1:
        sender, receiver = families["forward"].members.T
        assert (stage[receiver] == (stage[sender] + 1) % p).all()
        assert len(set(sender)) == len(sender) == mesh.num_ranks // p * (p if wrap else p - 1)
        for axis in ("tp", "cp", "dp"):
            assert (mesh.coordinate(axis)[sender] == mesh.coordinate(axis)[receiver]).all()
        assert (families["backward"].members == families["forward"].members[:, ::-1]).all()
        assert (families["forward"].slot(0), families["forward"].slot(1)) == ("forward_out", "forward_in")
        assert (families["backward"].slot(0), families["backward"].slot(1)) == ("backward_out", "backward_in")


def test_embedding_pairs_are_first_and_last_stage() -> None:
    mesh = Mesh(names=AXES, sizes=(2, 1, 1, 4))
    embedding = next(f for f in mesh.families(wrap=False, tied=True) if f.name == "embedding")
    assert embedding.members.tolist() == [[0, 6], [1, 7]]


def test_a_million_ranks_take_less_than_a_second() -> None:
    begin = time.process_time()
    families = Mesh(names=AXES, sizes=(8, 1, 8192, 16)).families(wrap=True, tied=True)
    assert time.process_time() - begin < 1.0
    assert sum(f.members.size for f in families) == 2**20 * (1 + 1 + 2 + 2) + 2**17


@pytest.mark.parametrize(
    ("names", "sizes", "rule"),
    [(("tp", "tp"), (1, 1), "different"), (("tp",), (1, 2), "one for each"), (("tp",), (0,), "at least 1")],
)
def test_refuses(names: tuple[str, ...], sizes: tuple[int, ...], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        Mesh(names=names, sizes=sizes)
