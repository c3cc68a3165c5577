"""What does overlap cost? Gradients that are reduced beside the backward pass take SMs from it.

``overlap`` scales what collectives take from the kernels beside them; with 0 they take nothing::

    run = cs.simulate(cluster, step)
    free = cs.simulate(cluster, step, overlap={"sm": 0, "hbm": 0})
    cs.analysis.compare(cs.summary(free), cs.summary(run))

The same on the command line: ``clustersim run llama-2-7b-tp8-dp2 --set overlap.sm=0``. Below, a model of 7 billion
parameters is trained by 16 replicas on two nodes of A100.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clustersim as cs
from clustersim.collective.ring import ring
from clustersim.collective.traffic import GroupShape
from clustersim.library.job import load_job
from clustersim.study.point import run_point
from clustersim.study.run_folder import write_run

Factors = dict[str, float]


@pytest.fixture(scope="module")
def cluster() -> cs.Topology:
    return cs.load_topology("dgx-a100", nodes=2)


def train(cluster: cs.Topology, factors: Factors | None = None, **plan: Any) -> cs.Result:
    given = cs.ParallelPlan(dp=16, **plan)
    step = cs.training_step(cs.load_model("llama-2-7b"), given, global_batch=16, micro_batch=1, seq_len=4096)
    return cs.simulate(cluster, step, overlap=factors)


def compute_s(run: cs.Result) -> float:
    return float(cs.summary(run)["breakdown_s"]["compute"])


def step_s(run: cs.Result) -> float:
    return float(cs.summary(run)["step_time_s"])


def test_overlap_saves_more_than_it_costs(cluster: cs.Topology) -> None:
    """Beside the backward pass the reduction is free but for slower kernels, after it none of it is."""
    beside, free, after = train(cluster), train(cluster, {"sm": 0, "hbm": 0}), train(cluster, overlap_dp=False)
    cost, saving = step_s(beside) - step_s(free), step_s(after) - step_s(beside)
    assert 0 < cost < saving / 2
    assert compute_s(free) == compute_s(after)
    assert compute_s(beside) > compute_s(free)


def test_the_cost_is_the_share_of_sms_times_the_time_beside(cluster: cs.Topology) -> None:
    """While k of n SMs are taken, kernels bound by them last c·k/(n - k) longer, c from the card; others lose nothing.

    So what the backward pass loses is at most c·k/(n - k + c·k) of the time for which collectives run, and not much
    less where nearly all of it is spent in matrix products.
    """
    run = train(cluster)
    taken = ring("all_reduce", 1, GroupShape(node=np.repeat([0, 8], 8))).num_sms
    trace = run.trace
    joint_s = float((trace["end_ns"] - trace["start_ns"])[trace["kind"] == "all_reduce"].sum()) / 1e9
    cost = compute_s(run) - compute_s(train(cluster, {"sm": 0}))
    lost = cluster.gpus[0].crowding * taken
    most = joint_s * lost / (cluster.gpus[0].num_sms - taken + lost)
    assert 0.8 * most < cost <= most


def test_a_calibrated_factor(cluster: cs.Topology) -> None:
    """Twice the SMs cost more, if not twice as much where kernels are slow; trying factors meets a measurement."""
    free, once, twice = (compute_s(train(cluster, {"sm": sm})) for sm in (0.0, 1.0, 2.0))
    assert 1.5 * (once - free) < twice - free < 2 * (once - free)


def test_the_run_folder_repeats_it(tmp_path: Path) -> None:
    setup = load_job("llama-2-7b-tp8-dp2").with_values({"overlap.sm": 0.0})
    run = run_point(setup)
    assert run.inputs["settings"]["overlap.sm"] == 0.0
    assert step_s(run) < step_s(run_point(load_job("llama-2-7b-tp8-dp2")))
    write_run(run, setup, tmp_path / "free")
    again = run_point(load_job(tmp_path / "free"))
    assert again.inputs["settings"] == run.inputs["settings"]
    assert step_s(again) == step_s(run)
