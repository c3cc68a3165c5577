"""Shortest routes between the devices of any directed graph, for every pair at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["shortest_routes"]

_FAR = np.iinfo(np.int64).max // 4
_HOP = 1
_NANOSECOND = 1 << 16
"""Weight of latency against that of a hop: no route has 65,536 hops, so latency always counts first."""


def shortest_routes(
    tail: NDArray[np.int64],
    head: NDArray[np.int64],
    latency_ns: NDArray[np.int64],
    devices: NDArray[np.int64],
    *,
    num_vertices: int,
    mirrored: bool = False,
) -> NDArray[np.int64]:
    """The route of least latency between each two devices, then of fewest hops, then over the lowest links.

    Bellman-Ford from all devices at once: distances settle after as many rounds as the longest route has hops; then
    each route is read off backwards over the lowest link that ends a shortest one.

    Parameters
    ----------
    tail, head : NDArray[int64], shape (num_links,)
        vertices that each link leads from and to
    latency_ns : NDArray[int64], shape (num_links,)
    devices : NDArray[int64], shape (n,)
        their vertices
    num_vertices : int
    mirrored : bool
        links 2i and 2i + 1 are the two directions of one: routes to lower device numbers are then those back

    Returns
    -------
    NDArray[int64], shape (n, n, hops)
        links in order of travel, padded with -1; all -1 for a device to itself and where no route leads
    """
    n, num_links = len(devices), len(tail)
    weight = latency_ns * _NANOSECOND + _HOP
    distance = np.full((n, num_vertices), _FAR, dtype=np.int64)
    distance[np.arange(n), devices] = 0
    order = np.lexsort((np.arange(num_links), head))
    ends, first = np.unique(head[order], return_index=True)
    while num_links:
        nearest = np.minimum.reduceat(distance[:, tail[order]] + weight[order], first, axis=1)
        improved = np.minimum(distance[:, ends], nearest)
        if np.array_equal(improved, distance[:, ends]):
            break
        distance[:, ends] = improved
    last = np.full((n, num_vertices), -1, dtype=np.int64)
    for link in range(num_links - 1, -1, -1):
        ends_one = distance[:, tail[link]] + weight[link] == distance[:, head[link]]
        last[ends_one & (distance[:, head[link]] < _FAR), head[link]] = link
    at = np.broadcast_to(devices, (n, n)).copy()
    source = np.arange(n)[:, None]
    hops: list[NDArray[np.int64]] = []
    while (step := last[source, at]).max(initial=-1) >= 0:
        hops.insert(0, step)
        at = np.where(step >= 0, tail[step], at)
    routes = np.stack(hops, axis=2) if hops else np.full((n, n, 0), -1, dtype=np.int64)
    # read off from the end, short routes have their padding first
    turn = np.argsort(routes < 0, axis=2, kind="stable")
    routes = np.take_along_axis(routes, turn, axis=2)
    return _mirror(routes) if mirrored else routes


def _mirror(routes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Routes to lower devices made those of the way there, backwards."""
    there = routes.transpose(1, 0, 2)[..., ::-1]
    back = np.where(there >= 0, there ^ 1, -1)
    back = np.take_along_axis(back, np.argsort(back < 0, axis=2, kind="stable"), axis=2)
    lower = np.tri(len(routes), k=-1, dtype=bool)
    mirrored: NDArray[np.int64] = np.where(lower[:, :, None], back, routes)
    return mirrored
