"""Figures of errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.analysis.accuracy import Accuracy

ERRORS = st.lists(st.none() | st.floats(-1, 10), min_size=1)


def test_figures_by_hand() -> None:
    found = Accuracy.of([0.1, None, -0.5, 0.2])
    assert (found.num_rows, found.num_predicted, found.num_refused, found.worst) == (4, 3, 1, 2)
    assert found.mape == pytest.approx(0.8 / 3)
    assert found.median_ape == pytest.approx(0.2)
    assert found.bias == pytest.approx(-0.2 / 3)
    assert found.p90_ape == pytest.approx(0.2 + 0.8 * 0.3)  # between the second and the third of three


def test_nothing_predicted_has_no_figures() -> None:
    for errors in ([], [None, None]):
        found = Accuracy.of(errors)
        assert found.num_refused == len(errors)
        assert (found.mape, found.median_ape, found.p90_ape, found.bias, found.worst) == (None,) * 5


@given(ERRORS, st.data())
def test_a_whole_is_the_mean_of_its_parts(errors: list[float | None], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(errors)))
    whole = Accuracy.of(errors)
    parts = [Accuracy.of(errors[:cut]), Accuracy.of(errors[cut:])]
    assert sum(part.num_rows for part in parts) == whole.num_rows
    assert sum(part.num_predicted for part in parts) == whole.num_predicted
    for name in ("mape", "bias"):
        weighted = sum((getattr(part, name) or 0) * part.num_predicted for part in parts)
        assert weighted == pytest.approx((getattr(whole, name) or 0) * whole.num_predicted, abs=1e-9)


@given(ERRORS)
def test_the_worst_row_is_the_farthest_off(errors: list[float | None]) -> None:
    found = Accuracy.of(errors)
    given = [abs(error) for error in errors if error is not None]
    assert (found.worst is None) == (not given)
    if found.worst is not None:
        worst = errors[found.worst]
        assert worst is not None
        assert abs(worst) == max(given)
        assert found.median_ape is not None
        assert found.p90_ape is not None
        assert found.median_ape <= found.p90_ape <= np.nextafter(max(given), np.inf)
