"""How many subgroups stay on the GPU: the closed form by hand, and against a search."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.library.job import load_job
from clustersim.study.offload_tail import Tail, TailRates, best_tail, search_tail, smallest_tail, tail_rates

RATES = TailRates(
    parameters=5_000_000_000,
    num_subgroups=50,
    update_cpu=10e9,
    update_gpu=100e9,
    leave=75e9,
    come=75e9,
    forward=40e9,
    backward=10e9,
)
"""In ns a weight: 0.1 of the CPU, 0.01 of the GPU, twice 0.0133 of the link, 0.025 forward, 0.1 backward."""


def test_the_last_subgroup_by_hand() -> None:
    """A CPU as fast as the backward pass: 0.1267 of the way against 0.135 of each subgroup, so one is enough.

    The queue is as long as the first subgroup's way: 0.1267 against 0.135 of each subgroup off the CPU.
    """
    assert smallest_tail(RATES) == 1
    assert smallest_tail(replace(RATES, leave=20e9, come=20e9)) == 2  # 0.2 of 0.135


def test_the_queue_by_hand() -> None:
    """A CPU half as fast as the backward pass: 50·(0.2 - 0.1) + 0.1267 against 0.235 of each subgroup off it."""
    assert smallest_tail(replace(RATES, update_cpu=5e9)) == 22
    assert smallest_tail(replace(RATES, update_cpu=5e9, num_subgroups=100)) == 44  # the same weights


def test_all_may_have_to_stay() -> None:
    assert smallest_tail(replace(RATES, update_cpu=1e6)) == 50


def test_the_fastest_that_fits_with_least_on_the_gpu() -> None:
    def point(tail: int, seconds: float, *, fits: bool = True) -> Tail:
        return Tail(tail=tail, subgroup_size=1, step_time_s=seconds, fits=fits, gpu_nbytes=tail)

    points = [point(0, 2.0), point(4, 1.004), point(8, 1.0), point(16, 0.9, fits=False)]
    best = best_tail(points)
    assert best is not None
    assert best.tail == 4
    assert best_tail([point(1, 1.0, fits=False)]) is None


@pytest.mark.parametrize("batch", [6, 8, 16])
def test_the_closed_form_is_as_good_as_the_search(batch: int) -> None:
    """From where the CPU lags far behind to where it keeps up; by the step, which is flat around the best."""
    setup = load_job("superoffload-5b").with_values({"global_batch": batch, "micro_batch": batch})
    rates = tail_rates(setup)
    closed = smallest_tail(rates)
    points = search_tail(setup, sorted({0, closed // 2, closed, closed + 4, closed + 16}))
    (at,) = [point for point in points if point.tail == closed]
    best = best_tail(points)
    assert best is not None
    assert at.fits
    assert at.step_time_s <= 1.02 * best.step_time_s
    assert at.step_time_s < 0.99 * points[0].step_time_s


def test_buckets_far_above_the_link_cost_time() -> None:
    """64 MiB against 4 GiB of fp32: the last bucket's way over the CPU and back is exposed."""
    setup = load_job("superoffload-5b").with_values({"global_batch": 16, "micro_batch": 16})
    small, large = search_tail(setup, [0], [16 * 2**20, 1024 * 2**20])
    assert (small.subgroup_size, large.subgroup_size) == (16 * 2**20, 1024 * 2**20)
    assert small.step_time_s < 0.99 * large.step_time_s
