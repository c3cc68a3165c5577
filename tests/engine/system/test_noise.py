"""Random factors: keyed, of mean 1, and the same folded and full."""

from __future__ import annotations

import random

import numpy as np
import pytest

import clustersim as cs
from clustersim.engine.system.noise import Noise


def ops(count, steps=1):
    """Step and number in it, of ``count`` ops a step."""
    return np.repeat(np.arange(steps), count), np.tile(np.arange(count), steps)


def test_factors_are_log_normal_with_mean_one():
    factors = Noise(seed=3, jitter=0.2).factors(0, 5, *ops(100_000, steps=2))
    assert abs(factors.mean() - 1) < 0.003
    assert abs(np.log(factors).std() - 0.2) < 0.002
    assert abs(np.corrcoef(np.log(factors[:100_000]), np.log(factors[100_000:]))[0, 1]) < 0.01


def test_factors_are_keyed_and_not_drawn_in_order():
    noise = Noise(seed=1, jitter=0.1)
    of = ops(50)
    assert (noise.factors(0, 7, *of) == noise.factors(0, 7, *ops(50, steps=3))[:50]).all()
    assert (noise.factors(0, 7, *ops(40)) == noise.factors(0, 7, *of)[:40]).all()
    different = [noise.factors(0, 8, *of), noise.factors(1, 7, *of), Noise(seed=2, jitter=0.1).factors(0, 7, *of)]
    assert all((other != noise.factors(0, 7, *of)).all() for other in different)


@pytest.fixture(scope="module")
def job():
    plan = cs.ParallelPlan(tp=2, pp=2, dp=2)
    return cs.training_step(cs.load_model("gpt2"), plan, global_batch=8, micro_batch=1, seq_len=256)


def test_every_rank_is_a_class_and_the_folded_run_is_the_full_one(job):
    cluster = cs.load_topology("dgx-h100")
    perturb = {"jitter": 0.05}
    folded = cs.simulate(cluster, job, steps=2, seed=4, perturb=perturb)
    full = cs.simulate(cluster, job, steps=2, seed=4, perturb=perturb, fold=False, shuffle=random.Random(1).shuffle)
    assert len(folded.record.lanes) == 8
    for a, b in zip(folded.record.lanes, full.record.lanes, strict=True):
        assert (a.start_ns == b.start_ns).all()
        assert (a.end_ns == b.end_ns).all()


def test_the_seed_decides(job):
    cluster = cs.load_topology("dgx-h100")
    ends = [
        cs.simulate(cluster, job, seed=seed, perturb={"jitter": 0.05}).record.lanes[0].end_ns.tobytes()
        for seed in (0, 0, 1)
    ]
    assert ends[0] == ends[1] != ends[2]
    still = cs.simulate(cluster, job, seed=1).record.lanes[0].end_ns
    assert (still == cs.simulate(cluster, job, seed=2).record.lanes[0].end_ns).all()


def test_jitter_costs_time_where_ranks_wait_for_each_other(job):
    cluster = cs.load_topology("dgx-h100")
    calm = cs.summary(cs.simulate(cluster, job))["step_time_s"]
    assert cs.summary(cs.simulate(cluster, job, perturb={"jitter": 0.3}))["step_time_s"] > calm


def test_a_jitter_out_of_range_is_refused(job):
    with pytest.raises(cs.BadInput, match=r"perturb.jitter"):
        cs.simulate(cs.load_topology("dgx-h100"), job, perturb={"jitter": -0.1})
