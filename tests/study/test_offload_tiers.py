"""The split over tiers: closed form and search agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustersim as cs
from clustersim.library.job import load_job
from clustersim.study.offload_tiers import balanced_split, search_split, split_by_lower_rate
from clustersim.topology.drive_rates import DriveRates, drive_rates

RATES = st.floats(0.5e9, 50e9)
TIERS = st.builds(DriveRates, read=RATES, write=RATES, half_duplex=st.booleans())


@given(st.lists(TIERS, min_size=2, max_size=2), st.integers(1, 500), st.integers(0, 20))
def test_all_subgroups_are_somewhere_and_tiers_equally_busy(tiers: list[DriveRates], count: int, cache: int) -> None:
    for found in (split_by_lower_rate(tiers, count), balanced_split(tiers, count, cache=cache)):
        assert sum(found) == count
        assert min(found) >= 0
    flowing = count - 2 * cache
    if flowing > 0:
        n = balanced_split(tiers, count, cache=cache)
        busy = [(k - cache) * tier.per_byte for k, tier in zip(n, tiers, strict=True)]
        assert abs(busy[0] - busy[1]) <= max(tier.per_byte for tier in tiers) * 1.01


def test_by_the_lower_rate_as_published() -> None:
    """6.9 / 5.3 and 3.6 / 3.6 GB/s: 60 % and 40 % of 82 subgroups."""
    rates = drive_rates(cs.load_topology("jlse-h100"))
    assert split_by_lower_rate([rates["nvme"], rates["file_system"]], 82) == (49, 33)


@pytest.mark.parametrize("topology", ["jlse-h100", "polaris"])
def test_the_search_finds_the_balanced_split(topology: str) -> None:
    """Over steps of 10 % of a model of 40B, the best is next to the closed form."""
    setup = load_job("mlp-offload-40b").with_values({"topology": topology, "plan.offload.cache": 0})
    rates = drive_rates(cs.load_topology(topology))
    wanted = balanced_split([rates["nvme"], rates["file_system"]], 100)
    near = round(wanted[1], -1)
    found = search_split(setup, [(round(100 - n), round(n)) for n in (near - 10, near, near + 10)])
    assert found[0].fits
    assert abs(found[0].shares[1] - wanted[1]) <= 10
