"""Colour refinement of the system's graph, vectorised, and the proof that its result is stable.

The coarsest stable colouring gives two ranks one colour exactly when no sequence of looking at neighbours tells them
apart. Each round replaces a vertex's colour by its colour and the multiset of (neighbour's colour, label) over its
edges; a multiset is summed as two 32-bit hashes, whose sums of up to 2^20 terms are exact in float64 whatever their
order. The fixed point is then checked once with integers and without hashes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Graph", "factorize", "refine"]

_U64 = np.uint64


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Graph:
    """A labelled graph.

    Attributes
    ----------
    colour : NDArray[int64], shape (num_vertices,)
        start colours
    u, v : NDArray[int64], shape (num_edges,)
        vertices joined by each edge
    label : NDArray[int64], shape (num_edges,)
    """

    colour: NDArray[np.int64]
    u: NDArray[np.int64]
    v: NDArray[np.int64]
    label: NDArray[np.int64]


def refine(graph: Graph) -> NDArray[np.int64]:
    """Coarsest stable colouring that is finer than the start colours.

    Returns
    -------
    NDArray[int64], shape (num_vertices,)
        colours 0, 1, …

    Raises
    ------
    ArithmeticError
        when hashes keep colliding (never seen; the chance is about 2^-64 a pair)
    """
    for salt in range(3):
        colour = _rounds(graph, salt)
        if _stable(graph, colour):
            return colour
    raise ArithmeticError("colour refinement: the fixed point does not hold under any of three salts")


def factorize(*columns: NDArray[np.generic]) -> NDArray[np.int64]:
    """Number the distinct rows of some columns of equal length; columns that are constant cost nothing."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if len(column) and (column != column[0]).any():
            inverse = np.unique(column, return_inverse=True)[1].reshape(-1)
            if code.any():
                inverse = np.unique(code * (int(inverse.max()) + 1) + inverse, return_inverse=True)[1].reshape(-1)
            code = inverse.astype(np.int64)
    return code


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    x = (x ^ (x >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _U64(27))) * _U64(0x94D049BB133111EB)
    return x ^ (x >> _U64(31))


def _rounds(graph: Graph, salt: int) -> NDArray[np.int64]:
    n = len(graph.colour)
    colour = factorize(graph.colour)
    count = int(colour.max()) + 1 if n else 0
    labels = _mix(graph.label.astype(np.uint64) + _U64(0x9E3779B97F4A7C15 + salt))
    low32 = _U64(0xFFFFFFFF)
    while True:
        high, low = np.zeros(n), np.zeros(n)
        mixed = _mix(colour.astype(np.uint64) + _U64(0xD1B54A32D192ED03))
        for here, there in ((graph.u, graph.v), (graph.v, graph.u)):
            seen = _mix(mixed[there] ^ labels)
            high += np.bincount(here, weights=(seen >> _U64(32)).astype(np.float64), minlength=n)
            low += np.bincount(here, weights=(seen & low32).astype(np.float64), minlength=n)
        new = _mix(_mix(mixed ^ high.astype(np.uint64)) + low.astype(np.uint64))
        inverse = np.unique(new, return_inverse=True)[1].reshape(-1)
        finer = int(inverse.max()) + 1 if n else 0
        if finer == count:
            return colour
        colour, count = inverse.astype(np.int64), finer


def _stable(graph: Graph, colour: NDArray[np.int64]) -> bool:
    """Whether every vertex has exactly its representative's start colour and multiset of (colour, label)."""
    n = len(colour)
    _, representative = np.unique(colour, return_index=True)
    of = representative[colour]
    if (graph.colour != graph.colour[of]).any():
        return False
    num_labels = int(graph.label.max()) + 1 if len(graph.label) else 1
    here = np.concatenate([graph.u, graph.v])
    seen = np.concatenate([colour[graph.v], colour[graph.u]]) * num_labels + np.concatenate([graph.label, graph.label])
    kinds = np.unique(seen)
    key = np.sort(here * len(kinds) + np.searchsorted(kinds, seen)) if len(kinds) else here
    degree = np.bincount(here, minlength=n)
    if (degree != degree[of]).any():
        return False
    first = np.concatenate([[0], np.cumsum(degree)])[:-1]
    vertex = np.repeat(np.arange(n), degree)
    other = np.arange(len(key)) - first[vertex] + first[of[vertex]]
    return bool((key - vertex * len(kinds) == key[other] - of[vertex] * len(kinds)).all())
