"""What whole steps miss: learned from measured steps, and what it makes of a prediction."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.analysis.step_residual import WITHIN, StepResidual, load_step_residual

CENTRES, SPREADS = st.floats(-0.9, 0.9), st.floats(0, 2)


def test_the_shipped_card_says_where_it_is_from() -> None:
    card = load_step_residual()
    assert card.sources["spread"].startswith(("measured:", "assumed:"))
    assert 0 < card.spread < 1


@given(seconds=st.floats(1e-6, 1e6), centre=CENTRES, of=SPREADS, spread=SPREADS)
def test_the_prediction_is_inside(seconds: float, centre: float, of: float, spread: float) -> None:
    low, high = StepResidual(name="a", centre=centre, spread=of).interval(seconds, spread)
    assert 0 < low <= seconds <= high
    wider = StepResidual(name="a", centre=centre, spread=of).interval(seconds, spread + 0.1)
    assert wider[0] <= low
    assert wider[1] >= high


def test_variances_add_up() -> None:
    interval = StepResidual(name="a", centre=0.0, spread=0.3).interval(2.0, 0.4)
    assert list(interval) == pytest.approx([2 * math.exp(-WITHIN * 0.5), 2 * math.exp(WITHIN * 0.5)])


def test_of_a_normal_error_the_spread_is_found_again() -> None:
    draw = np.random.default_rng(7)
    logs = draw.normal(0.0, math.hypot(0.05, 0.12), 4000).tolist()
    found = StepResidual.of("a", logs, [0.05] * 4000, [str(k % 400) for k in range(4000)])
    assert found.spread == pytest.approx(0.12, rel=0.1)
    assert abs(found.centre) < 0.02


def test_few_sources_make_it_wider() -> None:
    logs = np.random.default_rng(7).normal(0.0, 0.1, 4000).tolist()
    few, many = (StepResidual.of("a", logs, [0.0] * 4000, [str(k % n) for k in range(4000)]) for n in (5, 400))
    assert few.spread > 1.2 * many.spread


def test_every_source_counts_the_same() -> None:
    logs = [0.01] * 100 + [0.5, -0.5, 0.5]
    sources = ["many"] * 100 + ["b", "c", "d"]
    assert StepResidual.of("a", logs, [0.0] * 103, sources).spread == pytest.approx(0.5 / WITHIN, rel=0.1)


def test_a_centre_is_learned_where_it_helps_sources_that_are_left_out() -> None:
    logs = [0.2, 0.22, 0.18, 0.21]
    assert StepResidual.of("a", logs, [0.0] * 4, ["a", "b", "c", "d"]).centre == pytest.approx(0.205)
    assert StepResidual.of("a", [0.2, -0.2, 0.1, -0.1], [0.0] * 4, ["a", "b", "c", "d"]).centre == 0.0


@pytest.mark.parametrize(("key", "value"), [("centre", 1.5), ("centre", float("nan")), ("spread", -0.1)])
def test_illegal_numbers_are_named(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{key}: "):
        replace(StepResidual(name="a", centre=0.0, spread=0.1), **{key: value})
