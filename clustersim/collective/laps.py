"""Rings and chains message by message: what waits for what, and the links that the messages of several of them share.

Only one ring or chain is played: where all members sit alike the others do the same at the same time.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["MAX_MESSAGES", "Edge", "chain_ns", "ring_ns"]

MAX_MESSAGES = 1 << 12
"""That are played, some 10 us each; of longer rings the first ones, which give the pace of the others."""


@dataclass(frozen=True, slots=True)
class Edge:
    """From one member of a ring or chain to the next.

    Parameters
    ----------
    latency : float
        of its route [ns]
    beat : float
        of a ring: time of one message on its busiest link, alone there; of a chain: of all bytes [ns]
    link : int
        edges of one number share that link with the same edges of the others; -1: its link is its own
    crowd : float
        of k edges that use the link at once a message takes max(1, crowd · k) beats
    """

    latency: float
    beat: float
    link: int = -1
    crowd: float = 1.0


@lru_cache(maxsize=4096)
def ring_ns(edges: tuple[Edge, ...], num_messages: int) -> float:
    """Time until each edge of a closed ring has carried its messages, the last ones have arrived [ns].

    An edge sends its first message at once, and message k when message k-1 has left and the edge before has delivered
    its own message k-1. Among links of their own this is the longest chain of messages that wait for one another: as
    the number of messages M grows, T/M tends to the larger of the longest beat and Σ (latency + beat) / (number of
    edges), the cycle means of the event graph (Baccelli, Cohen, Olsder and Quadrat, *Synchronization and Linearity*,
    1992, chapter 2). Messages on a shared link go at equal rates.

    Parameters
    ----------
    edges : tuple[Edge, ...]
        in the order of the ring; those that share a link have the same beat
    num_messages : int
        M, over each edge

    Notes
    -----
    Of more than :data:`MAX_MESSAGES` in all, the first are played; the others follow at the pace of their second half.
    Where these would be less than four for each edge, the limit of T/M stands for all; no such ring shares links.
    """
    if not edges or not num_messages:
        return 0.0
    first = edges[0]
    if first.link < 0 and all(edge == first for edge in edges):
        return num_messages * (first.latency + first.beat)
    played = MAX_MESSAGES // len(edges)
    if played < 4:
        lap = sum(edge.latency + edge.beat for edge in edges)
        return num_messages * max(lap / len(edges), *(edge.beat for edge in edges))
    if num_messages <= played:
        return _Play(edges, num_messages).end()
    half, whole = _Play(edges, played // 2).end(), _Play(edges, played).end()
    return whole + (num_messages - played) * (whole - half) / (played - played // 2)


@lru_cache(maxsize=4096)
def chain_ns(edges: tuple[Edge, ...]) -> float | None:
    """Time until all bytes have come over all edges in turn, in chunks as small as one likes [ns].

    Played in k and in 2k chunks: T(k) = T(∞) + c/k, for filling the chain costs a chunk's time an edge, so that T(∞) =
    2·T(2k) - T(k). None for chains that are too long for four chunks to be played.
    """
    few = min(_CHUNKS, MAX_MESSAGES // (3 * max(1, len(edges))))
    if few < 4:
        return None

    def end(chunks: int) -> float:
        cut = tuple(Edge(edge.latency, edge.beat / chunks, edge.link, edge.crowd) for edge in edges)
        return _Play(cut, chunks, closed=False).end()

    return 2 * end(2 * few) - end(few)


_CHUNKS = 16


@dataclass(slots=True)
class _Link:
    """A link in use: every message on it has had ``served`` beats since time 0.

    Attributes
    ----------
    served : float
        beats of service that a message on it would have had until ``since``
    since : float
        [ns]
    waiting : deque[tuple[float, int]]
        (``served`` at which it will have left, edge) of the messages on it, in that order
    version : int
        counts changes: what was due before the last one is not
    """

    served: float = 0.0
    since: float = 0.0
    waiting: deque[tuple[float, int]] = field(default_factory=deque)
    version: int = 0


class _Play:
    """The messages of one ring: each edge's sender has a block of its own; or of a chain: its first member has all."""

    def __init__(self, edges: tuple[Edge, ...], num_messages: int, *, closed: bool = True) -> None:
        self.edges, self.num_messages = edges, num_messages
        self.delivered = [1] * len(edges) if closed else [num_messages] + [0] * (len(edges) - 1)
        self.sent = [0] * len(edges)
        self.busy = [False] * len(edges)
        self.links = {edge.link: _Link() for edge in edges if edge.link >= 0}
        self.soon: list[tuple[float, int, int, int]] = []  # when, what happens (below), where, version of a link

    def end(self) -> float:
        """When the last message has arrived [ns]."""
        now = 0.0
        for edge in range(len(self.edges)):
            self._send(edge, now)
        while self.soon:
            now, what, where, version = heapq.heappop(self.soon)
            if what == _ARRIVES:
                self.delivered[where] += 1
                self._send(where, now)
            elif what == _LEAVES:
                self._left(where, now)
            elif version == self.links[where].version:
                link = self.links[where]
                self._serve(link, now)
                _, edge = link.waiting.popleft()
                self._due(where, now)
                self._left(edge, now)
        return now

    def _send(self, edge: int, now: float) -> None:
        sent = self.sent[edge]
        if self.busy[edge] or sent == self.num_messages or self.delivered[edge] == sent:
            return
        self.busy[edge] = True
        one = self.edges[edge]
        if one.link < 0:
            heapq.heappush(self.soon, (now + one.beat, _LEAVES, edge, 0))
            return
        link = self.links[one.link]
        self._serve(link, now)
        link.waiting.append((link.served + 1, edge))
        self._due(one.link, now)

    def _left(self, edge: int, now: float) -> None:
        self.busy[edge] = False
        self.sent[edge] += 1
        following = (edge + 1) % len(self.edges)
        heapq.heappush(self.soon, (now + self.edges[edge].latency, _ARRIVES, following, 0))
        self._send(edge, now)

    def _serve(self, link: _Link, now: float) -> None:
        if link.waiting and now > link.since:
            link.served += (now - link.since) / self._beat(link)
        link.since = now

    def _due(self, number: int, now: float) -> None:
        link = self.links[number]
        link.version += 1
        if link.waiting:
            left = max(0.0, link.waiting[0][0] - link.served)
            heapq.heappush(self.soon, (now + left * self._beat(link), _LINK, number, link.version))

    def _beat(self, link: _Link) -> float:
        edge = self.edges[link.waiting[0][1]]
        return edge.beat * max(1.0, edge.crowd * len(link.waiting))


_ARRIVES, _LEAVES, _LINK = range(3)
