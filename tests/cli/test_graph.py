"""Jobs that train a data-flow graph, on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TABLE = """\
op,flops,out_bytes,after,parameters,device
stem,2e9,4000,,1000000,0
left,8e9,2000,stem,500000,0
right,8e9,2000,stem,500000,1
join,1e6,,left right,,0
"""
JOB = """\
name = "net"
graph = "./net.csv"
"graph.batch" = 4
"graph.devices" = 2
topology = "dgx1-v100"

[sources]
"graph.batch" = "assumed"
"""


@pytest.fixture(autouse=True)
def card(call: Callable[..., Any]) -> None:
    """A job of one's own in the folder that commands run in."""
    Path("net.csv").write_text(TABLE)
    Path("net.toml").write_text(JOB)


def test_a_card_runs(call: Callable[..., Any]) -> None:
    answer = call("run", "./net.toml")
    assert answer.code == 0
    assert "net on dgx1-v100: 8 GPUs, 1 node\nmp 2 x dp 4; 4 samples a worker" in answer.out
    assert "samples/s" in answer.out
    assert "tokens/s" not in answer.out


def test_so_do_settings_alone(call: Callable[..., Any]) -> None:
    settings = ("graph=./net.csv", "graph.batch=4", "graph.devices=2")
    alone = call("run", "--topology", "dgx1-v100", *(f"--set={text}" for text in settings), "--json").json
    assert alone["step_time_s"] == call("run", "./net.toml", "--json").json["step_time_s"]


def test_a_folder_is_repeated_compared_and_drawn(call: Callable[..., Any]) -> None:
    assert call("run", "./net.toml", "--out", "runs/a").code == 0
    Path("net.csv").unlink()
    assert call("run", "runs/a", "--out", "runs/b").code == 0
    first, second = (json.loads(Path(run, "summary.json").read_text()) for run in ("runs/a", "runs/b"))
    assert first | {"wall_s": 0} == second | {"wall_s": 0}
    same = call("compare", "runs/a", "runs/b", "--json").json
    assert same["changed_inputs"] == {}
    assert same["metrics"]["samples_per_s"]["ratio"] == 1
    assert call("run", "runs/a", "--set", "graph.batch=8", "--out", "runs/c").code == 0
    changed = call("compare", "runs/a", "runs/c", "--json").json["changed_inputs"]
    assert [key.rpartition("settings.")[2] for key in changed] == ["graph.batch"]
    for kind in ("timeline", "memory", "breakdown", "links"):
        assert call("plot", "runs/a", "--kind", kind, "--out", f"{kind}.png").code == 0
        assert Path(f"{kind}.png").is_file()


def test_a_plot_of_pipelines_is_refused(call: Callable[..., Any]) -> None:
    call("run", "./net.toml", "--out", "runs/a")
    answer = call("plot", "runs/a", "--kind", "pipeline", "--out", "x.png")
    assert answer.code == 2
    assert "--kind: 'pipeline'" in answer.err


def test_widths_are_varied(call: Callable[..., Any]) -> None:
    answer = call("run", "./net.toml", "--vary", "graph.devices=1,2,3")
    assert answer.code == 0
    assert "samples/s/GPU" in answer.out
    rows = [line.split() for line in answer.out.splitlines()[1:4]]
    assert {row[0]: row[1] for row in rows} == {"1": "ok", "2": "ok", "3": "bad_input"}
    speeds = [float(row[4].replace(",", "")) for row in rows[:2]]
    assert speeds == sorted(speeds, reverse=True)
    assert speeds[1] > 0


def test_settings_of_other_jobs_are_refused(call: Callable[..., Any]) -> None:
    answer = call("run", "./net.toml", "--set", "model=gpt2", "--set", "plan.tp=2", "--json")
    assert answer.code == 2
    assert [error["key"] for error in answer.json["errors"]] == ["model", "plan.tp"]
    answer = call("run", "./tiny.toml", "--set", "graph.devices=2", "--json")
    assert [error["key"] for error in answer.json["errors"]] == ["graph.devices"]


@pytest.mark.parametrize("name", ["./net.csv", "gnmt"])
def test_a_graph_is_shown(call: Callable[..., Any], name: str) -> None:
    answer = call("show", "graph", name, "--json")
    assert answer.code == 0
    assert answer.json["has_device"] is (name == "./net.csv")
    assert answer.json["num_ops"] == (4 if name == "./net.csv" else 80)


def test_faults_of_a_table_name_its_lines(call: Callable[..., Any]) -> None:
    Path("net.csv").write_text(TABLE.replace("stem,8e9", "stem,many").replace("left,8e9", "left,many"))
    answer = call("run", "./net.toml", "--json")
    assert answer.code == 2
    assert [error["key"] for error in answer.json["errors"]] == ["line 3, flops"]
