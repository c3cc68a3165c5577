"""Edges against sums in a dictionary."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clustersim.collective.edges import Edges

Sums = dict[tuple[int, int], list[int]]


def summed(rows: NDArray[np.int64], nbytes: NDArray[np.int64]) -> Sums:
    sums: dict[tuple[int, int], NDArray[np.int64]] = defaultdict(lambda: np.zeros(nbytes.shape[1], dtype=np.int64))
    for group, crossed in enumerate(rows.tolist()):
        for row, carried in zip(crossed, nbytes, strict=True):
            if row >= 0 and carried.any():
                sums[group, row] += carried
    return {place: load.tolist() for place, load in sums.items()}


def as_sums(edges: Edges) -> Sums:
    places = list(zip(edges.group.tolist(), edges.row.tolist(), strict=True))
    assert places == sorted(set(places)), "each once, in order"
    return dict(zip(places, edges.load.tolist(), strict=True))


@settings(max_examples=100, deadline=None)
@given(
    num_rows=st.sampled_from([1, 3, 1000]),  # few are counted, many are sorted
    shape=st.tuples(st.integers(1, 4), st.integers(0, 30), st.integers(1, 3)),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_hop_is_summed_once(num_rows: int, shape: tuple[int, int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k, columns = shape
    rows, nbytes = rng.integers(-1, num_rows, (n, k)), rng.integers(0, 3, (k, columns))
    assert as_sums(Edges.of(rows, nbytes)) == summed(rows, nbytes)


def test_merged_columns_are_those_of_the_parts() -> None:
    first = Edges.of(np.array([[0, 2], [2, 2]]), np.array([[5], [7]]))
    second = Edges.of(np.array([[2], [1]]), np.array([[1, 2]]))
    merged = Edges.merged([(np.array([1]), first), (np.array([0, 2]), second)], num_rows=3, num_columns=3)
    assert as_sums(merged) == {(0, 0): [0, 5, 0], (0, 2): [1, 7, 2], (1, 1): [1, 0, 2], (1, 2): [0, 12, 0]}


def test_the_busiest_resource_has_the_longest_time_not_the_most_bytes() -> None:
    edges = Edges.of(np.array([[0, 1, -1], [-1, -1, -1]]), np.array([[10], [30], [99]]))
    assert edges.busiest(np.array([1.0, 6.0]), 2).tolist() == [[10.0], [0.0]]
    assert edges.largest(edges.load[:, 0], 2).tolist() == [30, 0]


@pytest.mark.parametrize("columns", [1, 4])
def test_no_hops_are_no_edges(columns: int) -> None:
    edges = Edges.of(np.zeros((3, 0), dtype=np.int64), np.zeros((0, columns), dtype=np.int64))
    assert edges.load.shape == (0, columns)
    assert edges.busiest(np.ones(1), 3).tolist() == [[0.0] * columns] * 3
