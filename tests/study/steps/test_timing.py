"""The period of a short batch gives the time of the long one; where there is none, all is simulated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.library.model import load_model
from clustersim.study.steps import timing
from clustersim.study.steps.machine import Machine
from clustersim.study.steps.step_job import StepJob
from clustersim.workload.plan import ParallelPlan

MODEL = replace(load_model("gpt2"), num_layers=8)


def job(number: int, **plan: Any) -> StepJob:
    full = ParallelPlan(**{"tp": 1, "pp": 1, "dp": 2, "recompute": "full", **plan})
    return StepJob(
        machine=Machine(card="dgx-a100", nodes=1, ranks_per_node=2 * full.tp * full.pp),
        model=MODEL,
        plan=full,
        global_batch=2 * number,
        micro_batch=1,
        seq_len=1024,
        dtype="bf16",
    )


@pytest.mark.parametrize(
    "plan",
    [{}, {"zero": 1}, {"fsdp": True}, {"pp": 2}, {"pp": 4, "zero": 1}, {"pp": 2, "vpp": 2}, {"tp": 2, "pp": 2}],
)
def test_the_line_is_the_simulation(plan: dict[str, Any]) -> None:
    long = job(40, **plan)
    short = timing.step_time(long)
    whole = timing._seconds(timing._run(long))
    assert short.simulated < 40
    assert short.seconds == pytest.approx(whole, rel=2e-6)
    assert short.ledger.tokens == 80 * 1024


def test_one_layer_is_what_one_more_adds() -> None:
    model = replace(load_model("gpt2"), num_layers=1)
    layer = timing.step_time(replace(job(1, dp=1), model=model, one_layer=True))
    plain = [timing.step_time(replace(job(1, dp=1), model=replace(model, num_layers=n))) for n in (3, 4)]
    added = [time.seconds - time.optimizer_s for time in plain]
    assert layer.seconds == pytest.approx(added[1] - added[0], rel=2e-2)
    assert layer.optimizer_s == 0


@pytest.mark.parametrize(("number", "plan"), [(3, {}), (4, {"pp": 4}), (8, {"pp": 4, "schedule": "zb-h1"})])
def test_short_steps_are_simulated(number: int, plan: dict[str, Any]) -> None:
    one = timing.step_time(job(number, **plan))
    assert one.simulated == number
    assert one.seconds == timing._seconds(timing._run(job(number, **plan)))
