"""How often to save, and what failures lose."""

from __future__ import annotations

from math import sqrt

import pandas as pd
import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.library.job import JobSetup
from clustersim.study.checkpoint_interval import Interval, checkpoint_intervals, lost_work, young_interval
from clustersim.study.point import run_point

SAVES = {"plan.zero": 1, "plan.checkpoint.policy": "synchronous", "plan.checkpoint.tier": "nvme"}


@pytest.fixture
def saving() -> JobSetup:
    """GPT-2 on one node with two drives, saved synchronously."""
    return JobSetup.of("saving", model="gpt2", topology="polaris", global_batch=16, seq_len=128).with_values(SAVES)


def test_a_save_holds_up_as_long_however_often_it_is(saving: JobSetup) -> None:
    once, often = checkpoint_intervals(saving, (4, 1))
    assert once.held_up == pytest.approx(often.held_up, rel=1e-3)
    assert often.slowdown > once.slowdown > 1
    assert once.behind == pytest.approx(once.held_up, rel=0.05)
    assert once.lost == once.seconds / 2 + once.behind


def test_lazy_saves_hold_up_less_and_are_committed_later_than_they_let_go(saving: JobSetup) -> None:
    (synchronous,) = checkpoint_intervals(saving, (32,))
    (lazy,) = checkpoint_intervals(saving.with_values({"plan.checkpoint.policy": "lazy"}), (32,))
    assert lazy.held_up < 0.05 * synchronous.held_up
    assert lazy.behind > 2 * lazy.plain_step_time


def test_least_is_wasted_at_youngs_interval() -> None:
    """Over a grid of intervals, with a step of a second, saves of ten and a failure a day."""
    mtbf, held = 86_400.0, 10.0
    best = young_interval(held, mtbf)
    assert best == sqrt(2 * held * mtbf)

    def waste(every: int) -> float:
        return Interval(every=every, step_time=1 + held / every, plain_step_time=1.0, behind=5.0).waste(mtbf)

    least = min(range(100, 4000), key=waste)
    assert least + held == pytest.approx(best, rel=0.01)


def test_failures_lose_what_follows_the_last_committed_version(saving: JobSetup) -> None:
    lazy = saving.with_values({"plan.checkpoint.policy": "lazy", "plan.checkpoint.every": 16, "steps": 48})
    run = run_point(lazy)
    versions = cs.analysis.checkpoints(run.trace)
    assert versions["step"].tolist() == [15, 31, 47]
    assert (versions["begun"] < versions["copied"]).all()
    assert (versions["copied"] < versions["committed"]).all()
    assert versions["nbytes"].nunique() == 1
    assert versions["nbytes"][0] == pytest.approx(14 * cs.load_model("gpt2").num_parameters, rel=0.02)
    first, second = versions["committed"][0], versions["committed"][1]
    lost = lost_work(versions, [first - 1e-6, first, second - 1e-6, second])
    begun = versions["begun"]
    expected = [first - 1e-6, first - begun[0], second - 1e-6 - begun[0], second - begun[1]]
    assert lost == pytest.approx(expected)


def test_the_mean_loss_is_half_the_interval_and_the_time_to_commit() -> None:
    """Versions every 10 s that take 3 s each, failures spread evenly over one interval between commits."""
    versions = pd.DataFrame({"begun": [10.0 * n for n in range(9)], "committed": [10.0 * n + 3 for n in range(9)]})
    lost = lost_work(versions, [43.0 + 10 * (k + 0.5) / 1000 for k in range(1000)])
    interval = Interval(every=10, step_time=1.0, plain_step_time=1.0, behind=3.0)
    assert sum(lost) / len(lost) == pytest.approx(interval.lost)


def test_a_job_that_saves_nothing_is_refused(tiny: JobSetup) -> None:
    with pytest.raises(BadInput) as error:
        checkpoint_intervals(tiny, (1,))
    assert [fault.key for fault in error.value.faults] == ["plan.checkpoint.policy"]
