"""Rings over direct links: orders of GPUs in which a ring collective uses many links of a mesh at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.topology import Topology

__all__ = ["direct_links", "rings"]

MAX_MEMBERS = 16
"""Members up to which rings are searched for; a larger group keeps its own order."""

_MAX_STEPS = 10_000
"""Steps of a search before it settles for one ring less."""


def direct_links(topology: Topology, devices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Links that join each two devices without anything between them.

    Parameters
    ----------
    devices : NDArray[int64], shape (n,)

    Returns
    -------
    NDArray[int64], shape (n, n)
        parallel links of the one resource on the way, 0 where the way crosses more than one, as through a switch
    """
    n = len(devices)
    links = np.zeros((n, n), dtype=np.int64)
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    rows = topology.route(devices[first], devices[second])
    for i in np.flatnonzero((rows >= 0).sum(axis=1) == 1):
        links[first[i], second[i]] = topology.resources.block(int(rows[i, 0])).num_links
    return links


def rings(num_links: NDArray[np.int64]) -> NDArray[np.int64]:
    """Closed orders of all GPUs that together use no link twice in one direction, as many as a search finds.

    NCCL and RCCL run one ring a channel and spread a collective evenly over them; on a mesh of direct links that, not
    the bandwidth of one link, is what a collective reaches. Each order is used in both directions, so a GPU of degree d
    is on at most 2 · floor(d/2) rings: 6 in the hybrid cube mesh of V100s (Hamiltonian cycles of a multigraph).

    Parameters
    ----------
    num_links : NDArray[int64], shape (n, n)
        links between each two GPUs, symmetric; as :func:`direct_links` gives

    Returns
    -------
    NDArray[int64], shape (num_rings, n)
        positions in order of travel; the one order 0, 1, …, n - 1 where direct links close no ring, and behind a switch
    """
    n = len(num_links)
    own = np.arange(n, dtype=np.int64)[None]
    if not 2 < n <= MAX_MEMBERS:
        return own
    for count in range(int(num_links.sum(axis=1).min()) // 2, 0, -1):
        found = next(_cycles(num_links.tolist(), count, [_MAX_STEPS]), None)
        if found is not None:
            there = np.array(found, dtype=np.int64)
            return np.concatenate([there, np.roll(there[:, ::-1], 1, axis=1)])
    return own


def _cycles(left: list[list[int]], count: int, steps: list[int]) -> Iterator[list[list[int]]]:
    """Sets of ``count`` cycles through all vertices that fit the links ``left``."""
    if not count:
        yield []
        return
    for cycle in _from(left, [0], steps):
        for others in _cycles(left, count - 1, steps):
            yield [cycle, *others]


def _from(left: list[list[int]], path: list[int], steps: list[int]) -> Iterator[list[int]]:
    """Cycles that begin with ``path``; the links of one are taken while it is looked at, widest pairs first."""
    at = path[-1]
    steps[0] -= 1
    ends = [0] if len(path) == len(left) else sorted(set(range(len(left))) - set(path), key=lambda b: -left[at][b])
    for b in ends:
        if steps[0] < 0:
            return
        if not left[at][b]:
            continue
        left[at][b] -= 1
        left[b][at] -= 1
        if len(path) == len(left):
            yield path
        else:
            yield from _from(left, [*path, b], steps)
        left[at][b] += 1
        left[b][at] += 1
