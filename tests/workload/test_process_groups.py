"""Which ranks do what together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clustersim.workload.job import GroupFamily
from clustersim.workload.mesh import Mesh
from clustersim.workload.process_groups import process_groups
from clustersim.workload.schedule import bidirectional, loop, vee

AXES = ("tp", "cp", "dp_inner", "dp_outer", "pp")
MESHES = st.builds(
    lambda names, sizes: Mesh(names=tuple(names), sizes=tuple(sizes)),
    st.permutations(AXES),
    st.lists(st.integers(1, 4), min_size=5, max_size=5),
)


def families_of(mesh: Mesh, *, chunks: int = 1, tied: bool = False) -> dict[str, GroupFamily]:
    return {f.name: f for f in process_groups(mesh, loop(mesh.size("pp"), chunks), tied=tied)}


@given(MESHES, st.booleans(), st.booleans())
def test_families_pair_neighbouring_stages(mesh: Mesh, wrap: bool, tied: bool) -> None:
    families = families_of(mesh, chunks=2 if wrap else 1, tied=tied)
    stage, p = mesh.coordinate("pp"), mesh.size("pp")
    replicas = mesh.size("cp") * mesh.size("dp_inner") * mesh.size("dp_outer")
    assert ("tp" in families) == (mesh.size("tp") > 1)
    assert ("dp" in families) == (replicas > 1)
    assert ("forward" in families) == ("backward" in families) == (p > 1)
    assert ("embedding" in families) == (p > 1 and tied)
    if replicas > 1:
        assert families["dp"].members.shape[1] == replicas
    if p > 1:
        sender, receiver = families["forward"].members.T
        assert (stage[receiver] == (stage[sender] + 1) % p).all()
        assert len(set(sender)) == len(sender) == mesh.num_ranks // p * (p if wrap else p - 1)
        for axis in ("tp", "cp", "dp_inner", "dp_outer"):
            assert (mesh.coordinate(axis)[sender] == mesh.coordinate(axis)[receiver]).all()
        assert (families["backward"].members == families["forward"].members[:, ::-1]).all()
        assert (families["forward"].slot(0), families["forward"].slot(1)) == ("forward_out", "forward_in")
        assert (families["backward"].slot(0), families["backward"].slot(1)) == ("backward_out", "backward_in")


@given(MESHES)
def test_replicas_are_split_into_inner_and_outer_groups(mesh: Mesh) -> None:
    families = families_of(mesh)
    inner, outer = mesh.size("cp") * mesh.size("dp_inner"), mesh.size("dp_outer")
    assert {"dp_inner", "dp_outer"} <= families.keys() or min(inner, outer) == 1
    if min(inner, outer) > 1:
        assert families["dp_inner"].members.shape[1] == inner
        assert families["dp_outer"].members.shape[1] == outer
        whole = {frozenset(group) for group in families["dp"].members.tolist()}
        for name in ("dp_inner", "dp_outer"):
            assert all(any(set(g) <= w for w in whole) for g in families[name].members.tolist())


def test_embedding_pairs_are_first_and_last_stage() -> None:
    mesh = Mesh(names=AXES, sizes=(2, 1, 1, 1, 4))
    assert families_of(mesh, tied=True)["embedding"].members.tolist() == [[0, 6], [1, 7]]


def test_on_a_vee_messages_also_go_up() -> None:
    mesh = Mesh(names=AXES, sizes=(1, 1, 1, 1, 3))
    families = {f.name: f for f in process_groups(mesh, vee(3), tied=True)}
    assert families["forward"].members.tolist() == [[0, 1], [1, 2]]
    assert families["forward-1"].members.tolist() == [[1, 0], [2, 1]]
    assert families["backward-1"].members.tolist() == [[0, 1], [1, 2]]
    assert "embedding" not in families  # both ends stand on stage 0


def test_stages_that_hold_copies_are_replicas_of_each_other() -> None:
    mesh = Mesh(names=AXES, sizes=(1, 1, 1, 2, 4))
    families = {f.name: f for f in process_groups(mesh, bidirectional(4))}
    assert families["dp"].members.tolist() == [[0, 1, 6, 7], [2, 3, 4, 5]]


def test_a_million_ranks_take_less_than_a_second(least_time: Callable[..., Any]) -> None:
    mesh = Mesh(names=AXES, sizes=(8, 1, 1, 8192, 16))
    took, families = least_time(lambda: process_groups(mesh, loop(16, 2), tied=True))
    assert took < 1.0
    assert sum(f.members.size for f in families) == 2**20 * (1 + 1 + 2 + 2) + 2**17


def test_members_stand_in_the_order_of_their_ranks() -> None:
    mesh = Mesh(names=("dp_outer", "cp", "tp", "dp_inner", "pp"), sizes=(2, 2, 2, 2, 1))
    members = families_of(mesh)["dp"].members
    assert (np.diff(members, axis=1) > 0).all()
