"""Rings over direct links: orders of GPUs in which a ring collective uses many links of a mesh at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.topology import Topology

__all__ = ["direct_links", "rings"]

MAX_MEMBERS = 16
"""Members up to which rings are searched for; a larger group keeps its own order."""

_MAX_STEPS = 10_000
"""Steps of a search before it settles for less."""


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
    """Closed orders of all GPUs that together load the links of a mesh as evenly as a search finds.

    NCCL and RCCL run one ring a channel and spread a collective evenly over them; on a mesh of direct links that, not
    the bandwidth of one link, is what a collective reaches. Each order is used in both directions. A GPU of d links is
    on d rings at most where each uses a link of its own, as in the hybrid cube mesh of V100s (6). Where d is odd, 2·d
    rings cross every link twice in each direction: 14 among eight MI300X.

    Parameters
    ----------
    num_links : NDArray[int64], shape (n, n)
        links between each two GPUs, symmetric; as :func:`direct_links` gives

    Returns
    -------
    NDArray[int64], shape (num_rings, n)
        positions in order of travel; the one order 0, 1, …, n - 1 where direct links close no ring, and behind a switch

    References
    ----------
    RCCL, ``src/graph/rome_models.cc``: four rings among the eight GCDs of a MI250X node, 14 among eight MI300X. NCCL
    issue 713: a dump of its six rings among four V100s with two links between each two.
    """
    return np.array(_orders(tuple(map(tuple, num_links.tolist()))), dtype=np.int64)


@cache
def _orders(num_links: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    """Those orders. A search for k of d tries the links as they are when k is even, each twice when it is odd."""
    n = len(num_links)
    own = [list(range(n))]
    if not 2 < n <= MAX_MEMBERS:
        return own
    for bandwidth in range(min(map(sum, num_links)), 0, -1):
        share, count = (2, bandwidth) if bandwidth % 2 else (1, bandwidth // 2)
        left = [[share * links for links in row] for row in num_links]
        found = next(_cycles(left, count, [_MAX_STEPS]), None)
        if found is not None:
            return found + [[order[0], *order[:0:-1]] for order in found]
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
