"""Rings and chains message by message, against times that can be worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.collective import laps
from clustersim.collective.laps import MAX_MESSAGES, Edge, chain_ns, ring_ns

WHOLE = st.integers(0, 50).map(float)
EDGES = st.lists(st.tuples(WHOLE, WHOLE), min_size=1, max_size=6)


def longest_chain(edges: list[tuple[float, float]], num_messages: int) -> float:
    """By its definition: start[e, k] = max(start[e, k-1] + beat, start[e-1, k-1] + beat + latency)."""
    start = [0.0] * len(edges)
    for _ in range(num_messages - 1):
        start = [
            max(start[e] + edges[e][1], start[e - 1] + edges[e - 1][1] + edges[e - 1][0]) for e in range(len(edges))
        ]
    return max(at + latency + beat for at, (latency, beat) in zip(start, edges, strict=True))


@given(edges=EDGES, num_messages=st.integers(1, 20))
def test_links_of_their_own_give_the_longest_chain(edges: list[tuple[float, float]], num_messages: int) -> None:
    ring = tuple(Edge(latency, beat) for latency, beat in edges)
    assert ring_ns(ring, num_messages) == pytest.approx(longest_chain(edges, num_messages))


def test_two_on_one_link_take_twice_as_long_until_one_has_left() -> None:
    """Both edges send at once: 2 beats each, of 10; then each waits for the other's latency."""
    ring = (Edge(5.0, 10.0, 0), Edge(5.0, 10.0, 0))
    assert ring_ns(ring, 1) == 25
    assert ring_ns(ring, 3) == 3 * 25
    assert ring_ns((Edge(5.0, 10.0, 0, 0.5), Edge(5.0, 10.0, 0, 0.5)), 3) == 3 * 15
    apart = (Edge(0.0, 10.0, 0), Edge(30.0, 10.0, 0))
    assert ring_ns(apart, 2) == 20 + 30 + 10  # of the second messages one leaves at 30 and one at 60: both arrive then


def test_long_rings_go_on_at_the_pace_of_their_first_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = (Edge(3.0, 10.0, 0), Edge(3.0, 10.0, 0), Edge(100.0, 30.0))
    num_messages = MAX_MESSAGES
    shortened = ring_ns(ring, num_messages)
    monkeypatch.setattr(laps, "MAX_MESSAGES", 3 * num_messages)
    ring_ns.cache_clear()
    assert ring_ns(ring, num_messages) == pytest.approx(shortened, rel=0.01)


def test_the_longest_of_all_take_the_limit() -> None:
    edges = [(1.0, float(k % 3)) for k in range(MAX_MESSAGES)]
    ring = tuple(Edge(latency, beat) for latency, beat in edges)
    assert ring_ns(ring, 10**6) == 10**6 * max(2.0, 1.0 + sum(k % 3 for k in range(MAX_MESSAGES)) / MAX_MESSAGES)


@given(edges=EDGES)
def test_chunks_as_small_as_one_likes_take_all_latencies_and_the_slowest_link(edges: list[tuple[float, float]]) -> None:
    chain = tuple(Edge(latency, beat) for latency, beat in edges)
    time = sum(latency for latency, _ in edges) + max(beat for _, beat in edges)
    assert chain_ns(chain) == pytest.approx(time, rel=1e-9, abs=1e-9)


def test_up_and_down_over_one_link() -> None:
    """L there and L back, W of bytes each way: both at once share the link, W + W in all, and the last must still come
    down; with latency longer than W nothing shares."""
    assert chain_ns((Edge(10.0, 100.0, 0), Edge(10.0, 100.0, 0))) == pytest.approx(210, rel=1e-9)
    assert chain_ns((Edge(500.0, 100.0, 0), Edge(500.0, 100.0, 0))) == pytest.approx(1100, rel=1e-9)


def test_what_is_too_long_is_not_played() -> None:
    assert chain_ns((Edge(1.0, 1.0),) * MAX_MESSAGES) is None
    assert ring_ns((), 5) == 0
