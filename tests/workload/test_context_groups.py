"""Which ranks share a sequence, and how."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clustersim.workload.context_groups import context_groups
from clustersim.workload.job import GroupFamily
from clustersim.workload.mesh import Mesh

AXES = ("tp", "cp", "dp_inner", "dp_outer", "pp")


def families(mesh: Mesh, ulysses: int) -> dict[str, GroupFamily]:
    return {family.name: family for family in context_groups(mesh, ulysses=ulysses)}


@given(st.permutations(AXES), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_groups_and_rings(names: tuple[str, ...], across: int, ulysses: int, other: int) -> None:
    sizes = {"cp": across * ulysses, "tp": other}
    mesh = Mesh(names=tuple(names), sizes=tuple(sizes.get(name, 2) for name in names))
    found = families(mesh, ulysses)
    cp = mesh.coordinate("cp")
    together = found["cp"].members
    assert sorted(together.ravel().tolist()) == list(range(mesh.num_ranks))
    expected = ulysses if ulysses > 1 else across
    assert together.shape[1] == expected
    assert (cp[together] // ulysses == cp[together[:, :1]] // ulysses).all() or ulysses == 1
    for axis in ("tp", "dp_inner", "dp_outer", "pp"):
        assert (mesh.coordinate(axis)[together] == mesh.coordinate(axis)[together[:, :1]]).all()
    assert ("cp_forward" in found) == (across > 1)
    if across > 1:
        sender, receiver = found["cp_forward"].members.T
        assert sorted(sender.tolist()) == sorted(receiver.tolist()) == list(range(mesh.num_ranks))
        assert (cp[receiver] == (cp[sender] + ulysses) % (across * ulysses)).all()
        assert (found["cp_backward"].members == found["cp_forward"].members[:, ::-1]).all()


def test_a_ring_of_two_goes_both_ways() -> None:
    mesh = Mesh(names=AXES, sizes=(1, 2, 1, 1, 1))
    assert families(mesh, 1)["cp_forward"].members.tolist() == [[0, 1], [1, 0]]


def test_exchanges_are_among_neighbours() -> None:
    mesh = Mesh(names=AXES, sizes=(1, 4, 1, 1, 1))
    found = families(mesh, 2)
    assert found["cp"].members.tolist() == [[0, 1], [2, 3]]
    assert np.array_equal(found["cp_forward"].members, [[0, 2], [2, 0], [1, 3], [3, 1]])
