"""Colour refinement against the same by hand: dictionaries and counters, no hashes."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.engine.factorize import factorize
from clustersim.engine.scene.refine import Graph, refine


def by_hand(graph: Graph) -> list[int]:
    """The coarsest stable colouring, one round after the other."""
    colour: list[int] = graph.colour.tolist()
    while True:
        seen: list[Counter[tuple[str, int, int]]] = [Counter() for _ in colour]
        for u, v, label in zip(graph.u.tolist(), graph.v.tolist(), graph.label.tolist(), strict=True):
            seen[u]["out", colour[v], label] += 1
            seen[v]["in", colour[u], label] += 1
        keys = [(c, frozenset(s.items())) for c, s in zip(colour, seen, strict=True)]
        number: dict[object, int] = {}
        new = [number.setdefault(key, len(number)) for key in keys]
        if len(number) == len(set(colour)):
            return colour
        colour = new


def same_partition(a: list[int], b: list[int]) -> bool:
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


def graph(colour: list[int], edges: list[tuple[int, int, int]]) -> Graph:
    columns = np.array(edges, dtype=np.int64).reshape(-1, 3)
    return Graph(colour=np.array(colour, dtype=np.int64), u=columns[:, 0], v=columns[:, 1], label=columns[:, 2])


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Copies of a small pattern, some edges changed: much symmetry, and something that breaks it."""
    size, copies = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    vertex = st.integers(0, size - 1)
    pattern = draw(st.lists(st.tuples(vertex, vertex, st.integers(0, 2)), max_size=8))
    edges = [(u + k * size, v + k * size, label) for k in range(copies) for u, v, label in pattern]
    anywhere = st.integers(0, size * copies - 1)
    edges += draw(st.lists(st.tuples(anywhere, anywhere, st.integers(0, 2)), max_size=2))
    colour = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)) * copies
    order = draw(st.permutations(range(size * copies)))
    return graph([colour[order.index(k)] for k in range(len(colour))], [(order[u], order[v], a) for u, v, a in edges])


@settings(max_examples=300)
@given(graphs())
def test_it_is_the_coarsest_stable_colouring(graph: Graph) -> None:
    assert same_partition(refine(graph).tolist(), by_hand(graph))


def test_a_path_is_told_apart_by_the_distance_to_its_ends() -> None:
    n = 9
    path = graph([0] * n, [(k, k + 1, 0) for k in range(n - 1)])
    both_ways = graph([0] * n, [(k, k + 1, 0) for k in range(n - 1)] + [(k + 1, k, 0) for k in range(n - 1)])
    assert len(set(refine(path).tolist())) == n  # an edge has a direction
    assert len(set(refine(both_ways).tolist())) == (n + 1) // 2


def test_a_ring_is_one_class_until_one_vertex_differs() -> None:
    n = 8
    ring = [(k, (k + 1) % n, 0) for k in range(n)]
    assert set(refine(graph([0] * n, ring)).tolist()) == {0}
    assert len(set(refine(graph([1] + [0] * (n - 1), ring)).tolist())) == n


def test_labels_and_multiplicities_count() -> None:
    assert len(set(refine(graph([0] * 4, [(0, 1, 0), (2, 3, 1)])).tolist())) == 4
    assert len(set(refine(graph([0] * 4, [(0, 1, 0), (0, 1, 0), (2, 3, 0)])).tolist())) == 4
    assert len(set(refine(graph([0] * 4, [(0, 1, 0), (2, 3, 0)])).tolist())) == 2


def test_graphs_without_edges_or_vertices() -> None:
    assert same_partition(refine(graph([3, 1, 3], [])).tolist(), [0, 1, 0])
    assert refine(graph([], [])).tolist() == []


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 10**12), st.sampled_from([0.5, 1.0])), min_size=1))
def test_factorize_numbers_distinct_rows(rows: list[tuple[int, int, float]]) -> None:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    code = factorize(*columns)
    assert len(set(zip(code.tolist(), rows, strict=True))) == len(set(code.tolist())) == len(set(rows))
    assert set(code.tolist()) == set(range(len(set(rows))))
