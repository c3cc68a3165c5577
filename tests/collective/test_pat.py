"""Parallel aggregated trees, step by step on real blocks."""

from __future__ import annotations

import numpy as np
import pytest

from clustersim.collective.pat import pat
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput

BLOCK = 1000


def spread(n: int) -> GroupShape:
    return GroupShape(node=np.arange(n))


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13, 16])
def test_every_tree_reaches_every_member(n: int) -> None:
    reached = {root: [0] for root in range(n)}  # places after the root
    steps = []
    for k in reversed(range((n - 1).bit_length())):
        moved: dict[tuple[int, int], int] = {}
        for root, places in reached.items():
            for place in list(places):
                if place + (1 << k) < n:
                    places.append(place + (1 << k))
                    pair = (root + place) % n, (root + place + (1 << k)) % n
                    moved[pair] = moved.get(pair, 0) + BLOCK
        steps.append(moved)
    assert all(sorted(places) == list(range(n)) for places in reached.values())
    flows = [
        dict(zip(zip(p.source.tolist(), p.destination.tolist(), strict=True), p.nbytes.tolist(), strict=True))
        for p in pat("all_gather", n * BLOCK, spread(n)).phases
    ]
    assert flows == steps


def test_little_goes_far() -> None:
    phases = pat("all_gather", 8000, spread(8)).phases
    assert [int(p.destination[0]) for p in phases] == [4, 2, 1]
    assert [set(p.nbytes.tolist()) for p in phases] == [{1000}, {2000}, {4000}]
    assert [p.num_steps for p in phases] == [1, 1, 1]


def test_reduce_scatter_goes_up_the_trees() -> None:
    down, up = (pat(kind, 7000, spread(7)).phases for kind in ("all_gather", "reduce_scatter"))
    for one, other in zip(down, reversed(up), strict=True):
        assert (one.source == other.destination).all()
        assert (one.destination == other.source).all()
        assert (one.nbytes == other.nbytes).all()


@pytest.mark.parametrize("node", [[0, 0, 2, 2], [0, 1, 2, 2], [0, 0]])
def test_two_members_on_a_node_are_refused(node: list[int]) -> None:
    with pytest.raises(BadInput, match="one member on each node, not 2") as caught:
        pat("all_gather", 8000, GroupShape(node=np.array(node)))
    assert caught.value.faults[0].nearest == "ring"
