"""The numbers of a communication library, and the protocols they make."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

import clustersim as cs
from clustersim.collective.explanations import explain_sizes
from clustersim.collective.select import ALGORITHMS
from clustersim.hardware.communication import Communication, Transport, protocols

NODE = cs.load_part("communication", "nccl")
NETWORK = cs.load_part("transport", "rdma")


def test_every_algorithm_has_protocols() -> None:
    assert ALGORITHMS.keys() <= protocols(NODE, NETWORK).keys()


@pytest.mark.parametrize("algorithm", ["ring", "tree"])
def test_what_starts_earliest_carries_least(algorithm: str) -> None:
    """Else a protocol would never be the fastest."""
    ways = sorted(protocols(NODE, NETWORK)[algorithm], key=lambda way: way.launch_latency + 14 * way.inside_latency)
    assert [way.name for way in ways] == ["LL", "LL128", "Simple"]
    fractions = [way.inside_fraction for way in ways]
    assert fractions == sorted(set(fractions))


def test_only_simple_runs_where_order_is_not_kept() -> None:
    """With the same numbers, for algorithms of messages as for rings."""
    known, kept = protocols(NODE, NETWORK), protocols(NODE, replace(NETWORK, in_order=False))
    assert kept.keys() == known.keys()
    for algorithm, ways in kept.items():
        assert ways == tuple(way for way in known[algorithm] if way.name == "Simple") != ()


def test_what_does_not_keep_order_is_slow_when_small_alone() -> None:
    def seconds(in_order: bool, size: int) -> float:
        cluster = cs.load_topology("dgx-a100", nodes=2)
        ways = protocols(NODE, replace(NETWORK, in_order=in_order))
        (one,) = explain_sizes("all_reduce", [size], replace(cluster, protocols=ways), range(16))
        return one.seconds

    assert seconds(False, 2**10) > 1.3 * seconds(True, 2**10)
    assert seconds(False, 2**33) == seconds(True, 2**33)


@pytest.mark.parametrize(
    ("card", "field", "value"),
    [
        (NODE, "launch_latency", -1e-6),
        (NODE, "ll128_fraction", 0.0),
        (NODE, "copy_bandwidth", float("inf")),
        (NETWORK, "simple_latency", float("nan")),
        (NETWORK, "message_fraction", 1.1),
    ],
)
def test_refused(card: Communication | Transport, field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        type(card)(**{**asdict(card), field: value})
