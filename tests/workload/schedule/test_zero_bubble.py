"""Bubbles and memory against the published closed forms, and against all tables of the smallest pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import Ideal, Schedule, Unit, check, ideal, loop, zb_h1, zb_h2

TIME = st.integers(1, 9)


def play(schedule: Schedule, p: int, m: int, f: int = 1, i: int = 1, w: int = 1) -> Ideal:
    return ideal(schedule(p, 1, m), loop(p, 1), forward=f, backward_input=i, backward_weight=w)


def test_the_rows_of_the_published_figure() -> None:
    rows = [" ".join(str(u).removesuffix(".0") for u in row) for row in zb_h1(4, 1, 5)]
    assert rows[0] == "F0 F1 F2 F3 I0 W0 F4 I1 W1 I2 W2 I3 W3 I4 W4"
    assert rows[3] == "F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 W2 W3 W4"
    rows = [" ".join(str(u).removesuffix(".0") for u in row) for row in zb_h2(2, 1, 5)]
    assert rows == [
        "F0 F1 F2 I0 W0 F3 I1 W1 F4 I2 W2 I3 W3 I4 W4",
        "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 F4 I4 W2 W3 W4",
    ]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.integers(0, 20), TIME, TIME, TIME)
def test_h1_has_the_published_bubble(p: int, more: int, f: int, i: int, w: int) -> None:
    found = play(zb_h1, p, p + more, f, i, w)
    # Qi et al. 2023, table 2: (p - 1)(F + I - W); a longer W has nothing left to fill.
    assert max(found.bubbles) == (p - 1) * (f + i - min(f, w))


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.integers(0, 20), TIME, TIME, TIME)
def test_h2_has_the_published_bubble(p: int, more: int, f: int, i: int, w: int) -> None:
    found = play(zb_h2, p, 2 * p - 1 + more, f, i, w)
    # Qi et al. 2023, table 2: (p - 1)(F + I - 2W) where it is the largest.
    assert max(found.bubbles) <= (p - 1) * max(0, i - f, f + i - 2 * w)
    if w <= f and 2 * w <= f + i:
        assert max(found.bubbles) == (p - 1) * (f + i - 2 * w)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.integers(1, 30))
def test_memory_is_the_published_one(p: int, m: int) -> None:
    h1, h2 = play(zb_h1, p, m), play(zb_h2, p, m)
    assert h1.peaks() == tuple(min(m, p - s) for s in range(p))
    assert max(h1.peaks(after=1)) == min(m, p)
    assert h2.peaks() == tuple(min(m, 2 * (p - s) - 1) for s in range(p))
    assert max(h2.peaks(after=1)) == min(m, 2 * p - 1)


def rows_in_order(m: int, most: int) -> Iterator[list[Unit]]:
    """Every order of F, I and W on one stage that keeps each in order and holds at most so many from F to W."""

    def extend(row: list[Unit], f: int, i: int, w: int) -> Iterator[list[Unit]]:
        if w == m:
            yield row
        if f < m and f - w < most:
            yield from extend([*row, Unit("F", f)], f + 1, i, w)
        if i < f:
            yield from extend([*row, Unit("I", i)], f, i + 1, w)
        if w < i:
            yield from extend([*row, Unit("W", w)], f, i, w + 1)

    return extend([], 0, 0, 0)


@pytest.mark.parametrize(("schedule", "most"), [(zb_h1, 2), (zb_h2, 3)])
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("costs", [(1, 1, 1), (2, 3, 2), (3, 3, 2)])
def test_no_table_of_two_stages_does_better(schedule: Schedule, most: int, m: int, costs: tuple[int, int, int]) -> None:
    f, i, w = costs
    rows = list(rows_in_order(m, most))
    best = min(
        max(ideal(table, loop(2, 1), forward=f, backward_input=i, backward_weight=w).bubbles)
        for table in product(rows, rows)
        if not check(table, num_stages=2, num_virtual=1, num_micro_batches=m)
    )
    assert max(play(schedule, 2, m, f, i, w).bubbles) == best


def test_they_refuse_chunks() -> None:
    for schedule, name in ((zb_h1, "zb-h1"), (zb_h2, "zb-h2")):
        with pytest.raises(ValueError, match=f"num_virtual: 2 must be 1 for {name}"):
            schedule(2, 2, 4)
