"""Chains inside nodes, streams between them."""

from __future__ import annotations

import numpy as np
import pytest

from clustersim.collective.collnet_chain import collnet_chain
from clustersim.collective.traffic import GroupShape
from clustersim.collective.tree import tree
from clustersim.faults import BadInput


def nodes(*counts: int) -> GroupShape:
    return GroupShape(node=np.repeat(np.cumsum(counts) - counts, counts), in_network=True)


@pytest.mark.parametrize("counts", [(8, 8), (4, 4, 4), (4, 2, 3)])
def test_the_chains_are_those_of_the_tree(counts: tuple[int, ...]) -> None:
    inside, between = collnet_chain("all_reduce", 24_000, nodes(*counts)).phases
    of_tree = tree("all_reduce", 24_000, nodes(*counts)).phases[0]
    assert (inside.source == of_tree.source).all()
    assert (inside.destination == of_tree.destination).all()
    assert (inside.nbytes == of_tree.nbytes).all()
    assert inside.num_steps == 2 * (max(counts) - 1)
    assert between.num_steps == 1
    assert set(between.nbytes.tolist()) == {24_000 // min(counts)}
    assert len(set(between.tree.tolist())) == 2 * min(counts)  # type: ignore[union-attr]


def test_a_member_a_node_leaves_the_streams_alone() -> None:
    (between,) = collnet_chain("all_reduce", 24_000, nodes(1, 1, 1)).phases
    assert between.source.tolist() == [1, 2, 0, 0]
    assert between.destination.tolist() == [0, 0, 1, 2]
    assert between.tree.tolist() == [0, 0, 1, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize("shape", [nodes(8), GroupShape(node=np.repeat([0, 4], 4))])
def test_where_it_cannot_run(shape: GroupShape) -> None:
    with pytest.raises(BadInput) as caught:
        collnet_chain("all_reduce", 8000, shape)
    assert [fault.nearest for fault in caught.value.faults] == ["ring"]
