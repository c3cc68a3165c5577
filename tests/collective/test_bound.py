"""Factors of nccl-tests, and the bound they give."""

import pytest

from clustersim.collective.bound import bus_factor, lower_bound
from clustersim.faults import BadInput


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("all_reduce", 1.75),
        ("all_gather", 0.875),
        ("reduce_scatter", 0.875),
        ("all_to_all", 0.875),
        ("gather", 0.875),
        ("scatter", 0.875),
        ("broadcast", 1),
        ("reduce", 1),
        ("send_recv", 1),
        ("barrier", 0),
    ],
)
def test_factors_of_eight_members(kind, factor):
    assert bus_factor(kind, 8) == factor
    assert lower_bound(kind, 8 * 10**9, 8, 4e9) == 2 * factor


@pytest.mark.parametrize("kind", ["all_reduce", "broadcast"])
def test_one_member_needs_no_time(kind):
    assert lower_bound(kind, 10**9, 1, 1e9) == 0


def test_unknown_kind():
    with pytest.raises(BadInput, match="nearest: all_to_all"):
        bus_factor("alltoall", 8)
