"""What protocols add to the links."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from clustersim.hardware.protocol import LONGEST_PIPELINE, MESSAGES_AT_ONCE, TEXTBOOK, Demand, Protocol

SIMPLE = Protocol(
    name="Simple",
    launch_latency=20e-6,
    inside_latency=1e-6,
    between_latency=3e-6,
    inside_fraction=0.8,
    between_fraction=0.5,
    copy_bandwidth=1e12,
    chunked=True,
)


def demand(
    inside: float = 0.0,
    between: float = 0.0,
    *,
    pipelined: bool = True,
    own_nbytes: int = 0,
    num_messages: int = 1,
    over_pcie: bool = False,
) -> Demand:
    return Demand(
        launch_ns=np.array([5_000]),
        route_ns=np.array([700]),
        inside_steps=4,
        between_steps=2,
        inside=np.array([inside]),
        between=np.array([between]),
        whole=np.array([max(inside, between)]),
        own_nbytes=own_nbytes,
        num_messages=num_messages,
        over_pcie=np.array([over_pcie]),
        pipelined=pipelined,
    )


def test_the_textbook_is_latency_and_bandwidth() -> None:
    ns, latency_ns = TEXTBOOK.ns(demand(inside=1e-3, between=2e-3))
    assert (ns.item(), latency_ns.item()) == (5_700 + 2_000_000, 5_700)


def test_phases_that_follow_one_another_add_up() -> None:
    ns, _ = replace(SIMPLE, chunked=False).ns(demand(inside=1e-3, between=2e-3, pipelined=False))
    assert ns.item() == 20_000 + 700 + 10_000 + 1_250_000 + 4_000_000


def test_chunks_of_a_pipeline() -> None:
    """F = 4 · 1 + 2 · 3 = 10 us. W = 90 us: 2 √(F·W) = 60 us; W = 4 ms, beyond k·F: 2 √k · F."""
    ns, latency_ns = SIMPLE.ns(demand(between=45e-6))
    assert ns.item() == 20_000 + 700 + 10_000 + 90_000 + 60_000
    assert latency_ns.item() == 30_700
    ns, _ = SIMPLE.ns(demand(between=2e-3))
    assert ns.item() == np.ceil(20_000 + 700 + 10_000 + 4_000_000 + 2 * LONGEST_PIPELINE**0.5 * 10_000)


def test_chunks_are_as_many_as_are_best() -> None:
    """Against (m + D - 1)(o + W/m) at the best whole m, for D steps of o, up to where buffers bound the chunks."""
    steps, overhead = 6, 1e-6
    way = Protocol(name="Simple", inside_latency=overhead, between_latency=overhead, chunked=True)
    for seconds in (1e-5, 4e-5, 1e-4):
        best = min((m + steps - 1) * (overhead + seconds / m) for m in range(1, 10_000))
        ns, _ = way.ns(demand(between=seconds))
        assert (ns.item() - 5_700) / 1e9 == pytest.approx(best, rel=0.25 if seconds < 4e-5 else 0.1)
        assert ns.item() >= best * 1e9


def test_a_message_alone_fills_no_pipeline() -> None:
    """What is passed on does, however many flows leave a member."""
    alone, _ = replace(SIMPLE, pairwise=True).ns(demand(between=45e-6))
    assert alone.item() == 20_000 + 700 + 10_000 + 90_000
    passed_on = [SIMPLE.ns(demand(between=45e-6, num_messages=m))[0].item() for m in (1, 3, 20)]
    assert passed_on == [alone.item() + 60_000] * 3


def test_messages_share_threads_until_there_is_no_more_room() -> None:
    """2 √(G·W) with W = 14.4 us: G = F = 10 us where 8 share them or more, √(1/7) of it where 2 do."""
    way = replace(SIMPLE, pairwise=True)
    extra = {m: way.ns(demand(between=7.2e-6, num_messages=m))[0].item() - 45_100 for m in (2, 4, 8, 9, 100)}
    assert extra[MESSAGES_AT_ONCE] == extra[9] == extra[100] == 24_000
    assert extra[2] == pytest.approx(24_000 * (1 / 7) ** 0.25, abs=1)
    assert extra[4] == pytest.approx(24_000 * (3 / 7) ** 0.25, abs=1)


def test_the_own_block_is_copied() -> None:
    quick, _ = SIMPLE.ns(demand())
    ns, _ = SIMPLE.ns(demand(own_nbytes=10**9))
    assert ns.item() - quick.item() == pytest.approx(1_000_000 + 2 * LONGEST_PIPELINE**0.5 * 10_000, abs=2)


def test_the_later_launch_counts() -> None:
    assert replace(SIMPLE, launch_latency=0.0).ns(demand())[1].item() == 5_000 + 700 + 10_000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("launch_latency", -1e-6),
        ("inside_latency", float("nan")),
        ("between_latency", float("inf")),
        ("inside_fraction", 0.0),
        ("between_fraction", 1.5),
        ("copy_bandwidth", 0.0),
    ],
)
def test_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        Protocol(**{**asdict(SIMPLE), field: value})


@pytest.mark.parametrize(
    ("in_order", "over_pcie", "runs"), [(True, False, True), (True, True, False), (False, True, True)]
)
def test_what_needs_order_does_not_run_over_pcie(in_order: bool, over_pcie: bool, runs: bool) -> None:
    assert replace(SIMPLE, in_order=in_order).runs(demand(over_pcie=over_pcie)).tolist() == [runs]
