"""Tokens sent once a node and once a member: what part of them goes where, and how many bytes that is."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from clustersim.collective.deduplicated import Deduplicated
from clustersim.collective.direct import direct
from clustersim.collective.returned import Returned
from clustersim.collective.traffic import GroupShape, Traffic
from clustersim.collective.well_formed import require_well_formed
from clustersim.faults import BadInput


def nodes(num_nodes: int, members: int) -> GroupShape:
    return GroupShape(node=np.repeat(np.arange(num_nodes) * members, members))


def between_nodes(traffic: Traffic, shape: GroupShape) -> int:
    return sum(int(p.nbytes[shape.node[p.source] != shape.node[p.destination]].sum()) for p in traffic.phases)


@pytest.mark.parametrize(("experts", "k", "groups", "top"), [(6, 2, 1, 1), (8, 3, 4, 2), (12, 3, 4, 3), (6, 1, 3, 1)])
def test_reach_is_the_share_of_all_choices_that_meet_a_neighbourhood(
    experts: int, k: int, groups: int, top: int
) -> None:
    each = experts // groups
    choices = [
        choice
        for picked in combinations(range(groups), top)
        for choice in combinations([e for e in range(experts) if e // each in picked], k)
    ]
    algorithm = Deduplicated(num_experts=experts, top_k=k, num_groups=groups, top_groups=top)
    for neighbours in range(experts + 1):
        share = sum(min(choice) < neighbours for choice in choices) / len(choices)
        assert algorithm.reach(neighbours) == pytest.approx(share, abs=1e-12)


def test_a_token_crosses_to_as_many_nodes_as_hold_its_experts() -> None:
    # every second of 8 experts on each of 2 nodes: 2 of 8 both at home, both away, or one on each
    shape, token = nodes(2, 2), 1000
    traffic = Deduplicated(num_experts=8, top_k=2)("all_to_all", 7 * 2 * token, shape)
    away = 1 - (4 * 3) / (8 * 7)
    assert between_nodes(traffic, shape) == pytest.approx(4 * 7 * token * away, abs=4)


def test_fewer_groups_mean_fewer_nodes() -> None:
    shape = nodes(8, 8)
    free = Deduplicated(num_experts=256, top_k=8)("all_to_all", 8 << 20, shape)
    limited = Deduplicated(num_experts=256, top_k=8, num_groups=8, top_groups=4)("all_to_all", 8 << 20, shape)
    plain = direct("all_to_all", 8 << 20, shape)
    assert between_nodes(limited, shape) < between_nodes(free, shape) < between_nodes(plain, shape)
    # a token meets each node with the same chance, and never more than 4 of the 8
    tokens = 64 << 20
    assert 3.6 / 8 * 7 * tokens < between_nodes(limited, shape) < 4 / 8 * 7 * tokens


def test_with_one_expert_a_token_nothing_is_saved() -> None:
    shape = nodes(4, 1)
    once = Deduplicated(num_experts=4, top_k=1)("all_to_all", 1 << 20, shape)
    assert between_nodes(once, shape) == between_nodes(direct("all_to_all", 1 << 20, shape), shape)


def test_inside_a_node_lanes_pass_on_what_all_nodes_sent() -> None:
    shape = nodes(3, 2)
    traffic = require_well_formed(Deduplicated(num_experts=6, top_k=1)("all_to_all", 6000, shape), "all_to_all", 6)
    lanes, inside = traffic.phases
    assert (shape.node[lanes.source] != shape.node[lanes.destination]).all()
    assert (shape.node[inside.source] == shape.node[inside.destination]).all()
    assert set(lanes.nbytes.tolist()) == {2000}
    assert set(inside.nbytes.tolist()) == {3000}


def test_what_comes_back_takes_the_way_there_in_reverse() -> None:
    shape = nodes(2, 2)
    there = Deduplicated(num_experts=8, top_k=2)
    out, back = there("all_to_all", 10_000, shape), Returned(there)("all_to_all", 10_000, shape)
    for first, last in zip(out.phases, reversed(back.phases), strict=True):
        assert np.array_equal(first.source, last.destination)
        assert np.array_equal(first.destination, last.source)
        assert np.array_equal(first.nbytes, last.nbytes)
    assert np.array_equal(out.memory_nbytes, back.memory_nbytes)


@pytest.mark.parametrize(
    ("algorithm", "kind", "shape"),
    [
        (Deduplicated(num_experts=8, top_k=2), "all_gather", nodes(2, 2)),
        (Deduplicated(num_experts=6, top_k=2), "all_to_all", nodes(2, 2)),
        (Deduplicated(num_experts=6, top_k=2), "all_to_all", GroupShape(node=np.array([0, 0, 2]))),
    ],
    ids=["another kind", "experts that do not divide", "unequal nodes"],
)
def test_refusals(algorithm: Deduplicated, kind: str, shape: GroupShape) -> None:
    with pytest.raises(BadInput):
        algorithm(kind, 1000, shape)


@pytest.mark.parametrize(("num_nodes", "members"), list(product((1, 2, 4), (1, 2, 4))))
def test_flows_are_well_formed_and_members_are_alike(num_nodes: int, members: int) -> None:
    shape = nodes(num_nodes, members)
    traffic = Deduplicated(num_experts=32, top_k=4)("all_to_all", 123_457, shape)
    require_well_formed(traffic, "all_to_all", num_nodes * members)
    assert len(set(traffic.memory_nbytes.tolist())) == 1
