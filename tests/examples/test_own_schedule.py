"""The worked example of a schedule: a table and a callable do what they say, and what is wrong with one is named."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import clustersim as cs
from clustersim.faults import BadInput

EXAMPLE = Path(__file__).with_name("own_schedule.py")
OWN = SimpleNamespace(**runpy.run_path(str(EXAMPLE)))


@pytest.fixture(scope="module")
def runs() -> dict[str, cs.Result]:
    return {name: OWN.step(name) for name in OWN.SCHEDULES}


def summary(run: cs.Result) -> dict[str, Any]:
    return dict(cs.summary(run))


def test_it_prints_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["1f1b", "table", "vee"]
    assert all(re.search(r"\d s, bubble [\d.]+%, [\d.]+ GiB", line) for line in lines)


def test_the_table_fills_the_bubble_and_pays_in_memory(runs: dict[str, cs.Result]) -> None:
    plain, own = summary(runs["1f1b"]), summary(runs["table"])
    assert own["bubble_fraction"] < 0.8 * plain["bubble_fraction"]
    assert own["step_time_s"] < plain["step_time_s"]
    assert own["peak_memory_bytes"]["gpu"] > plain["peak_memory_bytes"]["gpu"]


def test_stages_do_their_rows_in_order(runs: dict[str, cs.Result]) -> None:
    rows = [line.split(",") for line in OWN.TABLE.read_text().split()]
    letter = {"forward": "F", "backward input": "I", "backward weight": "W"}
    trace = runs["table"].trace
    passes = trace[(trace["category"] == "compute") & trace["phase"].isin(list(letter))].sort_values("start_ns")
    for stage, row in enumerate(rows):
        own = passes[passes["stage"] == stage]
        units = [f"{letter[p]}{j}" for p, j in zip(own["phase"], own["micro_batch"], strict=True)]
        assert list(dict.fromkeys(units)) == row


def test_the_turn_of_the_vee_passes_nothing_on(runs: dict[str, cs.Result]) -> None:
    """Four micro-batches go down once and up once, each way between the two stages; gradients likewise."""
    trace = runs["vee"].trace
    sends = trace[trace["name"].str.startswith("send")]
    by_rank = sends.groupby("rank").size()
    assert by_rank.tolist() == [4 + 4, 4 + 4]
    assert runs["vee"].trace["stage"].max() == 3  # four chunks on two stages
    memory = [summary(runs[name])["peak_memory_bytes"]["gpu"] for name in ("1f1b", "vee")]
    assert memory[0] < memory[1]  # everything is kept until all have come back


def test_a_table_that_deadlocks_is_refused_with_who_waits_for_whom() -> None:
    def crossed(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Any]]:
        unit = OWN.Unit
        return [[unit("F", 0), unit("B", 0)], [unit("B", 0), unit("F", 0)]]

    plan = cs.ParallelPlan(pp=2, schedule=crossed)
    with pytest.raises(BadInput, match=r"stage 1 at B0\.0 waits for F0\.0"):
        cs.training_step(cs.load_model("gpt2"), plan, num_devices=2, global_batch=1, micro_batch=1, seq_len=128)
