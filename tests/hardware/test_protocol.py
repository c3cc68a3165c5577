from __future__ import annotations

from dataclasses import asdict

import pytest

from clustersim.collective.select import ALGORITHMS
from clustersim.hardware.protocol import NCCL, Protocol


def test_every_algorithm_has_protocols() -> None:
    assert NCCL.keys() == ALGORITHMS.keys()


@pytest.mark.parametrize("algorithm", ["ring", "tree"])
def test_what_starts_earliest_carries_least(algorithm: str) -> None:
    """Else a protocol would never be the fastest."""
    steps = 14
    ways = sorted(NCCL[algorithm], key=lambda way: way.launch_latency + steps * way.inside_latency)
    assert [way.name for way in ways] == ["LL", "LL128", "Simple"]
    fractions = [way.bandwidth_fraction for way in ways]
    assert fractions == sorted(set(fractions))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("launch_latency", -1e-6),
        ("inside_latency", float("nan")),
        ("between_latency", float("inf")),
        ("bandwidth_fraction", 0.0),
        ("bandwidth_fraction", 1.5),
    ],
)
def test_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        Protocol(**{**asdict(NCCL["ring"][0]), field: value})
