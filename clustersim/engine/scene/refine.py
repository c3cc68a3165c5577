"""Colour refinement of the system's graph, vectorised, and the proof that its result is stable.

The coarsest stable colouring gives two ranks one colour exactly when no sequence of looking at neighbours tells them
apart. Each round replaces a vertex's colour by its colour and the multiset of (neighbour's colour, label) over its
edges, hashed as a sum of 64-bit hashes. The fixed point is then checked once with integers and without hashes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.factorize import factorize
from clustersim.engine.mix import mix

__all__ = ["Graph", "refine"]

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
        when hashes keep colliding (never seen; the chance is about 2^-60 a pair)
    """
    halves = [_Half.of(graph.u, graph.v, graph.label), _Half.of(graph.v, graph.u, graph.label)]
    start = factorize(graph.colour) if len(graph.colour) else graph.colour
    num_labels = int(graph.label.max()) + 1 if len(graph.label) else 1
    for salt in range(3):
        colour = _rounds(start, halves, num_labels, salt)
        representative = np.unique(colour, return_index=True)[1][colour] if len(colour) else colour
        same_start = bool((start == start[representative]).all())
        if same_start and all(half.is_stable(colour, representative, num_labels) for half in halves):
            return colour
    raise ArithmeticError("colour refinement: the fixed point does not hold under any of three salts")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Half:
    """The edges as seen from one of their ends, sorted by it.

    Attributes
    ----------
    vertices : NDArray[int64], shape (k,)
        those with edges
    first : NDArray[int64], shape (k,)
        position of the first edge of each
    there, label : NDArray[int64], shape (num_edges,)
        the other end, the label
    """

    vertices: NDArray[np.int64]
    first: NDArray[np.int64]
    there: NDArray[np.int64]
    label: NDArray[np.int64]

    @classmethod
    def of(cls, here: NDArray[np.int64], there: NDArray[np.int64], label: NDArray[np.int64]) -> _Half:
        order = np.argsort(here, kind="stable")
        ends = here[order]
        first = np.flatnonzero(np.concatenate([[True], ends[1:] != ends[:-1]])) if len(ends) else ends
        return cls(vertices=ends[first], first=first, there=there[order], label=label[order])

    def is_stable(self, colour: NDArray[np.int64], representative: NDArray[np.int64], num_labels: int) -> bool:
        """Whether every vertex has exactly its representative's multiset of (colour, label); integers, no hashes."""
        degree = np.diff(np.append(self.first, len(self.there)))
        position = np.full(len(colour), -1, dtype=np.int64)
        position[self.vertices] = np.arange(len(self.vertices))
        other = position[representative[self.vertices]]
        without_edges = np.bincount(colour[np.flatnonzero(position < 0)], minlength=len(colour))
        if (other < 0).any() or without_edges[colour[self.vertices]].any() or (degree != degree[other]).any():
            return False
        width = (int(colour.max()) + 1 if len(colour) else 1) * num_labels
        key = np.repeat(np.arange(len(degree)) * width, degree)
        key += colour[self.there] * num_labels + self.label
        key.sort()
        shift = np.repeat(self.first[other] - self.first, degree)
        shift += np.arange(len(key))
        apart = key[shift]
        apart -= key
        return bool((apart == np.repeat((other - np.arange(len(degree))) * width, degree)).all())


def _rounds(start: NDArray[np.int64], halves: list[_Half], num_labels: int, salt: int) -> NDArray[np.int64]:
    colour = start
    count = int(colour.max()) + 1 if len(colour) else 0
    # a multiset hashes to the sum of (hash of the colour) · (odd random number of the label), modulo 2^64
    factor = mix(np.arange(num_labels, dtype=np.uint64) + _U64(0x9E3779B97F4A7C15 + salt)) | _U64(1)
    factors = [factor[half.label] for half in halves]
    while True:
        mixed = mix(colour.astype(np.uint64) + _U64(0xD1B54A32D192ED03 + salt))
        new = mixed * _U64(0x9E3779B97F4A7C15)
        for way, (half, by_label) in enumerate(zip(halves, factors, strict=True), start=1):
            if len(half.first):
                seen = mixed[half.there]
                seen *= by_label
                new[half.vertices] += mix(np.add.reduceat(seen, half.first) + _U64(way))  # u and v are told apart
        inverse = np.unique(new, return_inverse=True)[1].reshape(-1)
        finer = int(inverse.max()) + 1 if len(inverse) else 0
        if finer == count:
            return colour
        colour, count = inverse.astype(np.int64), finer
