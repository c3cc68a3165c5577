"""The latency that bytes do not hide, where no library's protocol says what a step costs: rings, edge by edge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.laid import Laid
from clustersim.collective.laps import MAX_MESSAGES, Edge, ring_ns

__all__ = ["exposed_ns"]

_PS = 1e12
"""Times are whole picoseconds, so that sums over the members of equal groups are equal whatever their order."""


def exposed_ns(
    laid: Sequence[Laid], node: NDArray[np.int64], whole: NDArray[np.float64], in_step: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Latency beside the bytes' time, shape (n,) [ns].

    A ring takes as long as :func:`clustersim.collective.laps.ring_ns` says, at least its bytes' time and at most that
    and the longest latency of every step. Over several nodes its edges are one a node to the next node, the slowest of
    the lanes', for each ring crosses there by another, and between them those inside the node, which all rings but
    one use in turn: alike, at their mean. Chains, whose chunks are as small as one likes, hide nothing: the routes of
    one pass follow one another. Whatever else has the longest latency in every step.

    Parameters
    ----------
    laid : sequence of Laid
        phases that overlap
    node : NDArray[int64], shape (m,)
        of the members
    whole : NDArray[float64], shape (n,)
        time of the busiest resource [s]
    in_step : NDArray[int64], shape (n,)
        the longest latency of every step [ns]
    """
    messages = [one.phase.message_nbytes for one in laid]
    if None in messages or not laid:
        return in_step
    if not any(messages):
        return np.minimum(in_step, sum((_passed(one, node) for one in laid), np.zeros_like(in_step)))
    num_messages = sum(one.phase.num_steps for one in laid)
    rings = _around_nodes(laid, node, num_messages) if len(laid) == 2 else _around(laid[0], num_messages)
    if rings is None:
        return in_step
    played: dict[bytes, float] = {}
    for ring in rings:
        if (key := ring.tobytes()) not in played:
            played[key] = ring_ns(_edges(ring), num_messages)
    longest = np.array([played[ring.tobytes()] for ring in rings]).reshape(len(whole), -1).max(axis=1)
    exposed: NDArray[np.int64] = np.clip(np.rint(longest - whole * 1e9).astype(np.int64), 0, in_step)
    return exposed


def _passed(one: Laid, node: NDArray[np.int64]) -> NDArray[np.int64]:
    """Latency that a chunk of a chain meets in this phase: inside nodes the longest, between them each node's own."""
    source, destination = node[one.phase.source], node[one.phase.destination]
    if not (source != destination).all():
        return np.asarray(one.phase.num_steps * one.latency_ns.max(axis=1))
    return np.asarray(_by_node(np.maximum, one.latency_ns, source).sum(axis=1))


def _around(one: Laid, num_messages: int) -> NDArray[np.int64] | None:
    """Numbers of each closed ring of one phase, shape (n · rings, edges · 5); None where the flows are no such rings.

    Edges have links of their own, at the pace of all bytes.
    """
    source, destination = one.phase.source, one.phase.destination
    leaving = np.argsort(source)
    if not np.array_equal(source[leaving], np.sort(destination)) or len(np.unique(source)) != len(source):
        return None
    if (one.latency_ns == one.latency_ns[:, :1]).all() and (one.busiest == one.busiest[:, :1]).all():
        return None  # in step
    following = leaving[np.searchsorted(source[leaving], destination)]
    orders, left = list[list[int]](), np.ones(len(source), dtype=bool)
    for start in range(len(source)):
        order, at = list[int](), start
        while left[at]:
            left[at] = False
            order.append(at)
            at = int(following[at])
        if order:
            orders.append(order)
    if len({len(order) for order in orders}) > 1:
        return None
    beat = np.rint(one.busiest / num_messages * _PS).astype(np.int64)
    nothing = np.zeros_like(beat)
    numbers = np.stack([one.latency_ns, beat, nothing - 1, nothing, nothing + 1], axis=2)[:, orders]
    return numbers.reshape(len(beat) * len(orders), -1)


def _around_nodes(laid: Sequence[Laid], node: NDArray[np.int64], num_messages: int) -> NDArray[np.int64] | None:
    """As :func:`_around`, of one ring over nodes: its edges inside each, and the one to the next."""
    inside, between = laid
    source = node[inside.phase.source]
    used, flows = np.unique(source, return_counts=True)
    nodes, members = np.unique(node, return_counts=True)
    n, edges = len(inside.busiest), members - 1
    alone = np.rint(inside.per_byte * (inside.phase.message_nbytes or 0.0) * _PS).astype(np.int64)
    shared = np.rint(inside.busiest / num_messages * _PS).astype(np.int64)
    within = np.zeros((n, len(nodes), 5), dtype=np.int64)
    for column, value in ((0, inside.latency_ns), (1, alone), (4, shared)):
        within[:, np.searchsorted(nodes, used), column] = _by_node(np.add, value, source) // flows
    within[:, :, 2] = np.arange(len(nodes))
    within[:, :, 3] = edges
    across = np.zeros_like(within)
    leaving = node[between.phase.source]
    across[:, :, 0] = _by_node(np.maximum, between.latency_ns, leaving)
    across[:, :, 1] = _by_node(np.maximum, np.rint(between.busiest / num_messages * _PS).astype(np.int64), leaving)
    across[:, :, 2] = -1
    if (edges.sum() + len(nodes)) * num_messages > MAX_MESSAGES:  # one node, and what is alike of all the others
        edges = np.array([round(edges.mean())])
        within, across = (each.sum(axis=1, keepdims=True) // len(nodes) for each in (within, across))
        within[:, :, 2:4], across[:, :, 2] = [0, edges[0]], -1
    parts = []
    for k, count in enumerate(edges.tolist()):
        parts += [within[:, k]] * count + [across[:, k]]
    return np.concatenate(parts, axis=1)


def _edges(numbers: NDArray[np.int64]) -> tuple[Edge, ...]:
    """From (latency [ns], beat [ps], link, edges there, beat under all bytes [ps]) of each edge."""
    rows = numbers.reshape(-1, 5).tolist()
    return tuple(
        Edge(latency, beat / 1e3, link, shared / max(1, beat * count) if link >= 0 else 1.0)
        for latency, beat, link, count, shared in rows
    )


def _by_node(of: np.ufunc, value: NDArray[np.int64], node: NDArray[np.int64]) -> NDArray[np.int64]:
    """``of`` the values of each node's flows, shape (n, nodes); ``value`` has shape (n, f)."""
    order = np.argsort(node, kind="stable")
    first = np.flatnonzero(np.diff(node[order], prepend=-1))
    by_node: NDArray[np.int64] = of.reduceat(value[:, order], first, axis=1)
    return by_node
