"""Speculation and what it costs when it was wrong."""

from __future__ import annotations

import pytest

from clustersim.library.job import load_job
from clustersim.study.rollback import Rollback, rollback


def test_expectation_and_break_even_by_hand() -> None:
    steps = Rollback(right_s=1.0, wrong_s=3.0, waiting_s=1.5)
    assert steps.expected_s(0) == 1.0
    assert steps.expected_s(0.1) == pytest.approx(1.2)
    assert steps.break_even == 0.25
    assert steps.expected_s(steps.break_even) == pytest.approx(steps.waiting_s)
    assert Rollback(right_s=2.0, wrong_s=3.0, waiting_s=1.5).break_even == 0


def test_a_wrong_step_takes_two_updates_more_and_a_rare_one_costs_nothing() -> None:
    """Of 5.1 billion weights the CPU's Adam takes 28 bytes each, once to go back and once again."""
    steps = rollback(load_job("superoffload-5b").with_values({"plan.offload.tail": 0}))
    update = 28 * 5.14e9 / (0.69 * 512e9)
    assert steps.wrong_s - steps.right_s >= 2 * update
    assert steps.right_s < steps.waiting_s < steps.wrong_s
    assert steps.expected_s(93 / 79_000) < 1.003 * steps.right_s  # BLOOM's clipped steps after warm-up
