"""Every algorithm's schedule does what its kind promises and moves the bytes of the algorithm's flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from clustersim.collective import direct as whole_direct
from clustersim.collective import halving_doubling as whole_halving_doubling
from clustersim.collective import hierarchical as whole_hierarchical
from clustersim.collective import ring as whole_ring
from clustersim.collective import tree as whole_tree
from clustersim.collective.steps.direct import direct
from clustersim.collective.steps.halving_doubling import halving_doubling
from clustersim.collective.steps.hierarchical import hierarchical
from clustersim.collective.steps.proof import moved, prove
from clustersim.collective.steps.ring import closed_rings, ring
from clustersim.collective.steps.tree import tree
from clustersim.collective.traffic import Algorithm, GroupShape, Traffic
from clustersim.faults import BadInput

WHOLE: dict[object, tuple[tuple[str, ...], Algorithm]] = {
    direct: (whole_direct.KINDS, whole_direct.direct),
    halving_doubling: (whole_halving_doubling.KINDS, whole_halving_doubling.halving_doubling),
    hierarchical: (whole_hierarchical.KINDS, whole_hierarchical.hierarchical),
    ring: (whole_ring.KINDS, whole_ring.ring),
    tree: (whole_tree.KINDS, whole_tree.tree),
}
GRIDS = [(1, 1), (1, 2), (1, 5), (1, 8), (4, 1), (5, 1), (2, 2), (4, 2), (3, 3), (4, 4), (2, 8), (3, 4)]
BACKWARDS = [(2, 4), (2, 8), (3, 4), (5, 3), (6, 4)]
"""Grids whose rings close only if nodes run backwards: the pairs inside nodes differ, each member's bytes do not."""
MESH = np.array([[1, 2, 3, 0], [3, 0, 1, 2], [2, 3, 1, 0]])
"""Three rings among four; not the ones that a search finds, which use all links alike and would hide a mistake."""


def grid(num_nodes: int, m: int, rings: np.ndarray | None = None) -> GroupShape:
    """``num_nodes`` nodes of m members."""
    node = np.repeat(np.arange(num_nodes) * m, m)
    return GroupShape(
        node=node, rings=None if rings is None else np.concatenate([rings + k * m for k in range(num_nodes)], axis=1)
    )


def flows(traffic: Traffic) -> Counter[tuple[int, int]]:
    """Bytes by (source, destination), over all phases."""
    total: Counter[tuple[int, int]] = Counter()
    for phase in traffic.phases:
        for a, b, nbytes in zip(phase.source, phase.destination, phase.nbytes, strict=True):
            total[int(a), int(b)] += int(nbytes)
    return total


def calls() -> Iterator[object]:
    for steps, (kinds, _) in WHOLE.items():
        for kind in kinds:
            for num_nodes, m in GRIDS:
                yield pytest.param(steps, kind, num_nodes, m, None, id=f"{steps.__name__} {kind} {num_nodes}x{m}")  # type: ignore[attr-defined]
            if steps in (hierarchical, ring, tree) and kind != "all_to_all":
                for num_nodes in (1, 4):
                    name = f"{steps.__name__} {kind} meshes {num_nodes}x4"  # type: ignore[attr-defined]
                    yield pytest.param(steps, kind, num_nodes, 4, MESH, id=name)


@pytest.mark.parametrize(("steps", "kind", "num_nodes", "m", "rings"), [*calls()])
@pytest.mark.parametrize("num_slices", [1, 3])
def test_a_schedule_is_right_and_moves_the_bytes_of_the_flows(steps, kind, num_nodes, m, rings, num_slices):
    shape = grid(num_nodes, m, rings)
    n, whole = num_nodes * m, WHOLE[steps][1]
    even = 720 * n * num_slices  # every chunk whole
    schedule = steps(kind, even, shape, num_slices)
    prove(schedule)
    sent, expected = moved(schedule), flows(whole(kind, even, shape))
    if (num_nodes, m) in BACKWARDS and steps is ring:
        assert sent.total() == expected.total()
        if kind not in ("broadcast", "reduce"):  # which edge a chain leaves out depends on the way round
            assert by_member(sent, shape) == by_member(expected, shape)
    else:
        assert sent == expected
    odd = even - 7
    sent, expected = moved(steps(kind, odd, shape, num_slices)), flows(whole(kind, odd, shape))
    messages = Counter((t.source, t.destination) for t in schedule.transfers)
    if (num_nodes, m) not in BACKWARDS:
        assert sent.keys() == expected.keys()
        assert all(abs(sent[pair] - expected[pair]) <= n * messages[pair] for pair in sent)


def by_member(bytes_of: Counter[tuple[int, int]], shape: GroupShape) -> Counter[tuple[int, bool, bool]]:
    """What each member sends and receives, inside its node and to others."""
    total: Counter[tuple[int, bool, bool]] = Counter()
    for (a, b), nbytes in bytes_of.items():
        away = bool(shape.node[a] != shape.node[b])
        total[a, True, away] += nbytes
        total[b, False, away] += nbytes
    return total


@pytest.mark.parametrize("steps", WHOLE)
def test_members_of_a_node_need_not_be_neighbours(steps):
    shape = GroupShape(node=np.tile([0, 1, 2], 3))
    for kind in WHOLE[steps][0]:
        schedule = steps(kind, 9 * 720, shape, 2)
        prove(schedule)
        assert moved(schedule) == flows(WHOLE[steps][1](kind, 9 * 720, shape))


@pytest.mark.parametrize(("num_nodes", "m"), [*GRIDS, *BACKWARDS])
def test_rings_visit_everybody_and_stay_on_their_rails(num_nodes, m):
    rings = closed_rings(grid(num_nodes, m))
    assert len(rings) == (m if num_nodes > 1 else 1)
    for members in rings:
        assert sorted(members) == list(range(num_nodes * m))
        crossings = [(a, b) for a, b in zip(members, [*members[1:], members[0]], strict=True) if a // m != b // m]
        assert len(crossings) == (num_nodes if num_nodes > 1 else 0)
        assert all(a % m == b % m for a, b in crossings)


@pytest.mark.parametrize(
    ("steps", "kind", "shape", "num_slices", "named"),
    [
        (ring, "all_to_all", grid(1, 2), 1, "kind"),
        (ring, "all_reduce", grid(1, 2), 0, "num_slices"),
        (ring, "all_reduce", grid(3, 2), 1, "num_nodes"),
        (ring, "all_reduce", grid(2, 4, MESH), 1, "num_nodes"),
        (ring, "all_reduce", GroupShape(node=np.array([0, 0, 2])), 1, "group"),
        (tree, "all_reduce", GroupShape(node=np.array([0, 0, 2])), 1, "group"),
        (hierarchical, "all_reduce", GroupShape(node=np.array([0, 0, 2])), 1, "group"),
        (direct, "all_to_all", grid(1, 66), 1, "group"),
    ],
)
def test_what_cannot_be_played_is_refused_by_name(steps, kind, shape, num_slices, named):
    with pytest.raises(BadInput) as refusal:
        steps(kind, 1000, shape, num_slices)
    assert [fault.key for fault in refusal.value.faults] == [named]
