"""GPT on Frontier (arXiv 2312.12705): its numbers, what they rest on, and the search over plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clustersim.library.job import load_job
from clustersim.study.reproduce import Outcome, Quantity, Runs, System
from clustersim.study.reproduce.frontier import FRONTIER, step, step_time
from clustersim.study.sweep import sweep

HELD = (FRONTIER,)
RUNS = Runs()


def test_what_is_held(system: System, quantity: Quantity) -> None:
    assert quantity.simulated is not None
    assert Outcome(quantity=quantity, simulated=quantity.simulated(RUNS)).within


def test_the_readme_says_so(readme_row: Callable[[str], list[Any]]) -> None:
    told = [one.simulated(RUNS) for one in FRONTIER.quantities if one.name.startswith(("22B", "1T")) and one.simulated]
    assert told == readme_row("GPT 22B and 1T on Frontier, by the paper's count of FLOP, recomputation included")


def test_each_further_micro_batch_takes_the_same_time() -> None:
    card = "gpt-frontier-175b-1024"
    assert step(RUNS, card, 48)["step_time_s"] == pytest.approx(step_time(RUNS, card, 48), rel=2e-3)


def test_tensor_parallelism_beyond_a_node_is_slower() -> None:
    card = "gpt-frontier-22b-8"
    inside = step(RUNS, card, 8, tp=8, nodes=2, dp=2)
    across = step(RUNS, card, 16, tp=16, nodes=2, dp=1)
    assert across["step_time_s"] > 1.25 * inside["step_time_s"]
    assert across["breakdown_s"]["exposed_comm"]["tp"] > 2 * inside["breakdown_s"]["exposed_comm"]["tp"]


def test_two_replicas_scale_perfectly() -> None:
    card = "gpt-frontier-175b-1024"
    assert step_time(RUNS, card, 640, nodes=8, dp=1) == pytest.approx(
        step_time(RUNS, card, 640, nodes=16, dp=2), rel=0.01
    )


def test_plans_that_do_not_fit_stay_in_the_search() -> None:
    setup = load_job("gpt-frontier-22b-8").with_values({"global_batch": 16, "plan.recompute": "none"})
    vary = {"plan.tp": [1, 2, 4, 8], "plan.pp": [1, 2, 4], "micro_batch": [1, 4], "plan.dp": [1]}
    rows = sweep(setup, vary)
    assert len(rows) == 24
    by_plan = {tuple(row["point"].values())[:3]: row for row in rows}
    small, large = by_plan[8, 1, 1], by_plan[8, 1, 4]
    assert small["status"] == "ok"
    assert large["status"] == "out_of_memory"
    assert large["peak_memory_bytes"]["gpu"] > 64 * 2**30
    assert large["step_time_s"] < small["step_time_s"]
    # Those that do not fill the node are refused, each with its reason; of the others none is lost.
    refused = {plan for plan, row in by_plan.items() if row["status"] == "bad_input"}
    assert refused == {plan for plan in by_plan if plan[0] * plan[1] != 8}
    assert all(row["errors"] for row in rows if row["status"] == "bad_input")
    assert [row["status"] for row in rows] == sorted(
        (row["status"] for row in rows), key=["ok", "out_of_memory", "bad_input"].index
    )
