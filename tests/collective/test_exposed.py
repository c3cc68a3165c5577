"""Latency that bytes do not hide: between none and that of all steps, alike for groups that sit alike."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.collective.cost import group_cost
from clustersim.collective.halving_doubling import halving_doubling
from clustersim.collective.hierarchical import hierarchical
from clustersim.collective.ring import ring
from clustersim.collective.traffic import Algorithm, GroupShape
from clustersim.collective.tree import tree
from clustersim.topology.topology import Topology

ALGORITHMS = [ring, tree, hierarchical, halving_doubling]


def ns_of(topology: Topology, algorithm: Algorithm, nbytes: int, devices: np.ndarray) -> np.ndarray:
    """Of an all-reduce on each row of ``devices`` [ns]."""
    node = topology.node_of[devices[0]]
    _, first, of = np.unique(node, return_index=True, return_inverse=True)
    what = algorithm("all_reduce", nbytes, GroupShape(node=first[of]))
    return group_cost(topology, devices, (what,)).ns[:, 0]


@settings(max_examples=60, deadline=None)
@given(
    algorithm=st.sampled_from(ALGORITHMS),
    grid=st.sampled_from([(1, 4), (4, 1), (6, 1), (2, 4), (4, 3), (16, 8), (512, 1)]),
    nbytes=st.floats(0, 9).map(lambda x: round(10**x)),
    latency=st.floats(-9, -4).map(lambda x: round(10**x, 9)),
    over=st.sampled_from([1.0, 3.0]),
)
def test_between_the_parts_and_their_sum(
    star: ModuleType, algorithm: Algorithm, grid: tuple[int, int], nbytes: int, latency: float, over: float
) -> None:
    """At least the bytes alone; at most the latency of every step besides; the more latency, the longer."""
    everyone = np.arange(grid[0] * grid[1])[None]
    where = {"leaf": 2, "over": over}
    took = ns_of(star.cluster(*grid, latency=latency, **where), algorithm, nbytes, everyone).item()
    of_bytes = ns_of(star.cluster(*grid, **where), algorithm, nbytes, everyone).item()
    of_latency = ns_of(star.cluster(*grid, latency=latency, **where), algorithm, 0, everyone).item()
    longer = ns_of(star.cluster(*grid, latency=2 * latency, **where), algorithm, nbytes, everyone).item()
    steps = algorithm("all_reduce", nbytes, GroupShape(node=np.arange(everyone.size) // grid[1] * grid[1])).phases
    assert of_bytes * 0.999 - 10 <= took <= of_bytes + sum(p.num_steps for p in steps) * 4 * latency * 1e9 + 10
    assert of_latency <= took * 1.001 + 10
    assert longer >= took * 0.999 - 10


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_groups_that_sit_alike_take_alike(star: ModuleType, algorithm: Algorithm) -> None:
    """Four groups over two nodes each, and one of them with its members in another order of nodes."""
    topology = star.cluster(8, 4, leaf=2, over=2.0, latency=1e-6)
    groups = np.arange(32).reshape(4, 8)
    groups[3] = np.roll(groups[3], 4)
    assert len(np.unique(ns_of(topology, algorithm, 10**6, groups))) == 1


@pytest.mark.parametrize(
    ("latency", "expected"),
    [(1e-6, 6 * 20_000 + 4000), (1e-5, 6 / 4 * (2 * (10_000 + 20_000) + 2 * (20_000 + 40_000)))],
)
def test_the_slowest_link_or_the_lap_sets_the_pace(star: ModuleType, latency: float, expected: float) -> None:
    """Blocks of 100,000 B round four nodes, two a leaf: near edges of two links at 10 B/ns, far ones of four at 5 B/ns.

    Six blocks follow one another over a far edge, or one block makes six steps of a lap of four edges.
    """
    topology = star.cluster(4, 1, leaf=2, over=4.0, latency=latency)
    assert ns_of(topology, ring, 400_000, np.arange(4)[None]).item() == pytest.approx(expected, rel=0.01)
