"""Quantities with units: read exactly, shown readably, refused with the nearest legal text."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim import units
from clustersim.units import UnitError, parse, show


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("400 Gb/s", "B/s", 5e10),
        ("400Gb/s", "B/s", 5e10),
        ("400 Gbps", "B/s", 5e10),
        ("400 Gbit/s", "B/s", 5e10),
        ("3.35 TB/s", "B/s", 3.35e12),
        ("10 GBps", "B/s", 1e10),
        ("80 GB", "B", 8e10),
        ("80 GiB", "B", 80 * 2**30),
        ("81559 MiB", "B", 81559 * 2**20),
        ("7 KB", "B", 7000),
        ("989 TFLOP/s", "FLOP/s", 9.89e14),
        ("989 TFLOPS", "FLOP/s", 9.89e14),
        ("7 GFLOP", "FLOP", 7e9),
        ("5 us", "s", 5e-6),
        ("5 µs", "s", 5e-6),
        ("7 ns", "s", 7e-9),
        ("2 min", "s", 120),
        ("700 W", "W", 700),
        ("1.41 GHz", "Hz", 1.41e9),
        ("5e10", "B/s", 5e10),
        ("0.8", "", 0.8),
        (3, "B", 3.0),
        (0, "s", 0.0),
    ],
)
def test_quantities_are_read_in_si(text: str | float, unit: str, expected: float) -> None:
    assert parse(text, unit) == expected


@pytest.mark.parametrize(
    ("value", "unit", "dimension", "nearest"),
    [
        ("400 GB", "B/s", "a rate [B/s]", "400 GB/s"),
        ("400 gb/s", "B/s", "a rate [B/s]", "400 Gb/s"),
        ("3 GT/s", "B/s", "a rate [B/s]", "3 GB/s"),
        ("3 gilbert", "B/s", "a rate [B/s]", "3 B/s"),
        ("80 GB/s", "B", "an amount of bytes [B]", "80 GB"),
        ("80 GIB", "B", "an amount of bytes [B]", "80 GiB"),
        ("989 TFLOP", "FLOP/s", "a rate of work [FLOP/s]", "989 TFLOP/s"),
        ("989 Tflops", "FLOP/s", "a rate of work [FLOP/s]", "989 TFLOP/s"),
        ("3 GB", "s", "a time [s]", "3 s"),
        ("3 GB", "", "a pure number", "3"),
    ],
)
def test_another_dimension_is_refused_with_the_nearest_text(
    value: str, unit: str, dimension: str, nearest: str
) -> None:
    with pytest.raises(UnitError) as caught:
        parse(value, unit)
    assert caught.value.value == value
    assert dimension in caught.value.rule
    assert caught.value.nearest == nearest
    parse(nearest, unit)


@pytest.mark.parametrize(
    "value", ["", "fast", "nan", "inf", "-3 GB", "1e400", "3 4", math.nan, math.inf, -1, True, None]
)
def test_what_is_no_amount_is_refused(value: object) -> None:
    with pytest.raises(UnitError, match="an amount of bytes"):
        parse(value, "B")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["3 __import__('os')", "3 B)(", "3 B**99999999", "3 {}", "3 %", "3 B B"])
def test_text_that_pint_chokes_on_is_a_unit_error(text: str) -> None:
    with pytest.raises(UnitError):
        parse(text, "B")


@pytest.mark.parametrize("symbol", sorted(units._COMMON))
def test_the_short_table_agrees_with_pint(symbol: str) -> None:
    factor, unit = units._COMMON[symbol]
    assert math.isclose(units._factor_by_pint(f"1 {symbol}", symbol, unit), factor, rel_tol=1e-12)


@given(
    value=st.floats(min_value=1e-9, max_value=1e20),
    unit=st.sampled_from(["s", "B", "B/s", "FLOP", "FLOP/s", "W", "Hz", ""]),
)
def test_what_is_shown_reads_back(value: float, unit: str) -> None:
    low = {"s": 1e-9, "W": 1e-9}.get(unit, 1e-3)
    if value >= low:
        assert math.isclose(parse(show(value, unit), unit), value, rel_tol=1e-3)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.35e12, "B/s", "3.35 TB/s"),
        (999.9999e9, "B", "1 TB"),
        (5e-6, "s", "5 us"),
        (12345.0, "s", "12345 s"),
        (0, "B", "0 B"),
        (-3e9, "B", "-3 GB"),
        (0.82, "", "0.82"),
    ],
)
def test_show(value: float, unit: str, text: str) -> None:
    assert show(value, unit) == text


def test_a_unit_error_survives_a_process_boundary() -> None:
    error = UnitError("400 GB", "is not a rate [B/s]", "400 GB/s")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_ordinary_card_needs_no_pint_and_finding_one_no_validator() -> None:
    code = (
        "import sys; from clustersim.library import load_part, list_cards; list_cards();"
        "assert 'pydantic' not in sys.modules; load_part('gpu', 'h100-sxm'); assert 'pint' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
