"""``clustersim run --vary``."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

VARY = ("run", "tiny.toml", "--vary", "micro_batch=1,2", "--vary", "plan.pp=1,2")


def test_every_combination_is_kept_and_the_best_comes_first(call: Callable[..., Any]) -> None:
    answer = call(*VARY, "--json")
    assert answer.code == 0
    points = [(row["point"]["micro_batch"], row["point"]["plan.pp"]) for row in answer.json]
    assert sorted(points) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    statuses = [row["status"] for row in answer.json]
    assert statuses == ["ok", "ok", "bad_input", "bad_input"]  # pp 2 x dp 8 needs two nodes
    speeds = [row["tokens_per_s_per_gpu"] for row in answer.json[:2]]
    assert speeds == sorted(speeds, reverse=True)
    assert all(error["key"] == "plan.dp" for error in answer.json[2]["errors"])


def test_each_row_is_the_run_on_its_own(call: Callable[..., Any]) -> None:
    for row in call(*VARY, "--json").json[:2]:
        alone = call("run", "tiny.toml", "--set", f"micro_batch={row['point']['micro_batch']}", "--json").json
        assert {k: row[k] for k in alone if k != "wall_s"} == {k: v for k, v in alone.items() if k != "wall_s"}


def test_processes_beside_each_other_change_nothing(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    alone = call(*VARY, "--json").json
    monkeypatch.setattr("clustersim.cli.sweep.num_cores", lambda: 2)
    together = call(*VARY, "--json").json
    assert [row | {"wall_s": 0} for row in together] == [row | {"wall_s": 0} for row in alone]


def test_the_table_labels_what_does_not_fit_and_what_was_refused(call: Callable[..., Any]) -> None:
    more = ("--set", "model=gpt2-xl", "--set", "seq_len=1024", "--set", "global_batch=1024")
    answer = call("run", "tiny.toml", *more, "--vary", "micro_batch=1,3,128")
    assert answer.code == 0
    assert [line.split()[1] for line in answer.out.splitlines()[1:4]] == ["ok", "out_of_memory", "bad_input"]
    assert "refused: " in answer.out
    assert max(map(len, answer.out.splitlines()[:4])) <= 80


def test_long_names_of_settings_leave_room_for_the_rest(call: Callable[..., Any]) -> None:
    long = ("plan.overlap_refresh", "plan.overlap_dp", "plan.overlap_tp")
    varied = [token for key in long for token in ("--vary", f"{key}=true,false")]
    upper, lower, *rows = call("run", "tiny.toml", *varied).out.splitlines()[:10]
    assert upper.split() == ["overlap_", "overlap_", "overlap_"]
    assert lower.split()[:4] == ["refresh", "dp", "tp", "status"]
    assert max(map(len, [upper, lower, *rows])) <= 80
    upper, lower, *rows = call("run", "tiny.toml", *varied[:4]).out.splitlines()[:6]
    assert (upper.split(), lower.split()[:3]) == (["plan.overlap_", "plan."], ["refresh", "overlap_dp", "status"])
    assert call("run", "tiny.toml", *varied[:2]).out.splitlines()[0].split()[:2] == ["plan.overlap_refresh", "status"]


def test_what_runs_warn_of_is_told_once(call: Callable[..., Any]) -> None:
    answer = call("run", "tiny.toml", "--set", "plan.fsdp=true", "--vary", "plan.zero=0,1,2")
    assert answer.out.count("plan.zero: no effect with plan.fsdp") == 1
    assert "(2 of 3 runs)" in answer.out


def test_exit_codes(call: Callable[..., Any]) -> None:
    assert call("run", "tiny.toml", "--vary", "micro_batch=3,5").code == 2
    assert call("run", "tiny.toml", "--set", "limits.num_events=1", "--vary", "micro_batch=1,2").code == 1


def test_what_was_interrupted_did_not_end_well(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from clustersim.study.point import run_point

    def once(setup: Any, **settings: Any) -> Any:
        if setup.values["micro_batch"] == 2:
            raise KeyboardInterrupt
        return run_point(setup, **settings)

    monkeypatch.setattr(import_module("clustersim.study.sweep"), "run_point", once)
    answer = call("run", "tiny.toml", "--vary", "micro_batch=1,2", "--json")
    assert [row["status"] for row in answer.json] == ["ok", "interrupted"]
    assert answer.code == 1


def test_faults_of_the_command_come_before_any_run(call: Callable[..., Any]) -> None:
    answer = call("run", "tiny.toml", "--vary", "plan.tpp=1,2", "--vary", "nodes=0,1", "--vary", "steps", "--json")
    assert answer.code == 2
    assert [error["key"] for error in answer.json["errors"]] == ["plan.tpp", "plan.tpp", "nodes", "steps"]
    hundred = ",".join(map(str, range(1, 102)))
    assert call("run", "tiny.toml", "--vary", f"seed={hundred}", "--vary", f"steps={hundred}").code == 2


def test_lists_and_mappings_keep_their_commas(call: Callable[..., Any]) -> None:
    values = "plan.axis_order=[tp,cp,dp,pp],[dp,tp,cp,pp]"
    answer = call("run", "tiny.toml", "--vary", values, "--json")
    assert [row["point"]["plan.axis_order"] for row in answer.json] == [
        ["tp", "cp", "dp", "pp"],
        ["dp", "tp", "cp", "pp"],
    ]


def test_the_table_on_disk(call: Callable[..., Any]) -> None:
    answer = call(*VARY, "--json", "--out", "swept")
    written = json.loads(Path("swept/sweep.json").read_text())
    assert [row["point"] for row in written] == [row["point"] for row in answer.json]
    assert {path.name for path in Path("swept").iterdir()} == {"sweep.json", "versions.json"}
