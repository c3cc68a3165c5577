"""The numbers of a communication library, and the protocols they make."""

from __future__ import annotations

from dataclasses import asdict

import pytest

import clustersim as cs
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
