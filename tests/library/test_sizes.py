"""Sizes as they are typed."""

import pytest

from clustersim.library.sizes import read_size, read_sizes
from clustersim.library.values import Refused


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("8", 8),
        ("1K", 1024),
        ("1k", 1024),
        (" 4 MiB ", 1 << 22),
        ("8G", 1 << 33),
        ("1.5G", 3 << 29),
        ("8E", 1 << 63),
    ],
)
def test_one_size(text: str, nbytes: int) -> None:
    assert read_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "G", "-1", "1e6", "nan", "inf", "1.0001", "1 Gb", "0x10", "1M4M", "9" * 40])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(Refused):
        read_size(text)


def test_powers_of_ten_are_refused_with_the_power_of_two() -> None:
    with pytest.raises(Refused) as refused:
        read_size("1MB")
    assert refused.value.nearest == "1M"
    assert read_size(str(refused.value.nearest)) == 1 << 20


def test_ranges_and_lists() -> None:
    assert read_sizes("8..8G") == [8 << k for k in range(31)]
    assert read_sizes("1M..20M", 4) == [1 << 20, 1 << 22, 1 << 24]
    assert read_sizes("1..1") == [1]
    assert read_sizes("1M,3,1G..2G") == [1 << 20, 3, 1 << 30, 1 << 31]


@pytest.mark.parametrize("text", ["8..4", "0..8", "8..", "..8", "8...9", ",", "1M,", "1..2..3"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(Refused):
        read_sizes(text)


@pytest.mark.parametrize("factor", [1, 0, -2])
def test_a_range_that_would_never_end(factor: int) -> None:
    with pytest.raises(Refused) as refused:
        read_sizes("8..8G", factor)
    assert refused.value.nearest == 2
