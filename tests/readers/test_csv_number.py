"""Numbers in fields, and the nearest legal one of those that are none."""

from __future__ import annotations

import pytest

from clustersim.readers.csv_number import Misread, number, whole


@pytest.mark.parametrize(("text", "value"), [("8", 8), ("8.0", 8), ("8e0", 8), ("9007199254740993", 9007199254740993)])
def test_whole_numbers_however_they_are_written(text: str, value: int) -> None:
    assert whole(text, least=1, most=2**60) == value


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("0", 1), ("-5", 1), ("2.6", 3), ("1e30", 64), ("1e400", 64), ("-1e400", 1), ("9" * 5000, 64), ("65", 64)],
)
def test_the_nearest_legal_number(text: str, nearest: int) -> None:
    assert whole(text, least=1, most=64) == Misread(rule="must be a whole number from 1 to 64", nearest=nearest)


@pytest.mark.parametrize("text", ["", "eight", "nan", "8 GPUs", "0x8"])
def test_what_is_no_number_has_no_nearest(text: str) -> None:
    found = whole(text, least=0, most=1)
    assert found == Misread(rule="must be 0 or 1", nearest=None)
    assert number(text) is None
