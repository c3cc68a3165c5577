"""Order and regret within sweeps."""

from __future__ import annotations

import pytest

from clustersim.study.steps.sweeps import Ranking


def test_a_right_order_costs_nothing() -> None:
    found = Ranking.of([([1, 2, 3], [10, 20, 40])])
    assert (found.num_sweeps, found.regret) == (1, 0.0)
    assert found.rank_correlation == pytest.approx(1.0)


def test_the_choice_that_is_predicted_best_is_judged_by_its_measurement() -> None:
    found = Ranking.of([([3, 2, 1], [10, 20, 40]), ([1, 2], [5, 5])])
    assert found.rank_correlation == pytest.approx(-1.0)
    assert found.regret == pytest.approx((40 / 10 - 1) / 2)


def test_equal_values_share_a_rank() -> None:
    assert Ranking.of([([1, 1, 2], [1, 2, 3])]).rank_correlation == pytest.approx(0.866, abs=1e-3)


def test_nothing_to_rank() -> None:
    assert Ranking.of([]) == Ranking(num_sweeps=0, rank_correlation=None, regret=None)
    assert Ranking.of([([1, 2, 3], [4, 4, 4])]).rank_correlation is None
