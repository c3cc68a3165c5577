"""``clustersim run``: what it prints, writes and returns."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustersim.analysis.definitions import definitions
from clustersim.cli import main
from clustersim.library.job import JobSetup, load_job
from clustersim.library.settings import read_settings
from clustersim.study.point import prepare
from clustersim.workload.job import Job, Pool
from clustersim.workload.op import Delay
from clustersim.workload.program import Program

TINY = ("run", "tiny.toml")
CONFIG = {
    "model_type": "gpt2",
    "n_layer": 2,
    "n_embd": 64,
    "n_head": 4,
    "vocab_size": 512,
    "n_positions": 128,
    "architectures": ["GPT2LMHeadModel"],
}


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


class TestPrinted:
    def test_a_table_that_fits_eighty_columns(self, call: Callable[..., Any]) -> None:
        answer = call(*TINY)
        assert answer.code == 0
        assert max(map(len, answer.out.splitlines())) <= 80
        for label in ("step time", "tokens/s", "MFU", "HFU", "bubble", "exposed comm", "peak memory", "ranks", "ops"):
            assert label in answer.out
        assert "of 79.6 GiB" in answer.out

    def test_json_is_one_object_with_every_field_that_is_defined(self, call: Callable[..., Any]) -> None:
        answer = call(*TINY, "--json")
        assert answer.code == 0
        assert answer.err == ""
        assert set(answer.json) == {name for name in definitions() if "." not in name} - {"jobs"}
        assert answer.json["num_ranks"] == 8
        assert answer.json["tokens_per_s"] * answer.json["step_time_s"] == pytest.approx(16 * 128, rel=1e-12)

    def test_verbose_says_how_collectives_ran(self, call: Callable[..., Any]) -> None:
        plain, verbose = call(*TINY).out, call(*TINY, "-v").out
        assert max(map(len, verbose.splitlines())) <= 80
        assert "collectives" not in plain
        assert re.search(r"dp +all_reduce +\S+ +8/1 +nvls/Simple ", verbose)
        answer = call(*TINY, "--json", "--verbose").json
        assert {row["algorithm"] for row in answer["collectives"] if row["axis"] == "dp"} == {"nvls"}
        assert all(row["reason"] for row in answer["collectives"])

    def test_without_anything_it_says_what_to_type(self, call: Callable[..., Any]) -> None:
        answer = call("run")
        assert answer.code == 2
        assert answer.out.count("clustersim run") >= 3

    def test_what_it_says_to_type_is_legal(self, call: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"n_head": 8, "n_positions": 4096}))
        text = call("run").out.replace("\\\n", " ")
        commands = [shlex.split(line)[2:] for line in text.splitlines() if line.startswith("  clustersim run")]
        assert len(commands) == 4
        for tokens in commands:
            values = [value for flag, value in pairwise(tokens) if flag == "--set"]
            named = [f"{flag[2:]}={value}" for flag, value in pairwise(tokens) if flag in ("--model", "--topology")]
            settings, faults = read_settings([*named, *values])
            setup = load_job(tokens[0]) if not tokens[0].startswith("-") else JobSetup.of()
            assert prepare(setup.with_values(settings), faults).job.num_ranks

    def test_definitions_with_and_without_a_job(self, call: Callable[..., Any]) -> None:
        assert "bubble_fraction" in call("run", "--definitions").out
        assert call("run", "--definitions", "--json").json == definitions()
        assert call(*TINY, "--definitions", "--json").json["definitions"] == definitions()

    def test_full_simulates_every_rank_with_the_same_answer(self, call: Callable[..., Any]) -> None:
        folded, full = call(*TINY, "--json").json, call(*TINY, "--full", "--json").json
        assert (folded["num_classes"], full["num_classes"]) == (1, 8)
        assert full["fold"] == "off"
        assert full["step_times_s"] == folded["step_times_s"]

    def test_a_hugging_face_config_and_its_notes(self, call: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text(json.dumps(CONFIG))
        answer = call(
            *("run", "--model", "config.json", "--topology", "dgx-h100", "--json"),
            *("--set", "global_batch=8", "--set", "seq_len=64"),
        )
        assert answer.code == 0, answer.err
        assert answer.json["plan"]["dp"] == 8
        assert any("config.json" in warning for warning in answer.json["warnings"])


class TestFailed:
    def test_out_of_memory_is_an_answer(self, call: Callable[..., Any]) -> None:
        more = (
            "--set",
            "model=gpt2-xl",
            "--set",
            "micro_batch=64",
            "--set",
            "global_batch=512",
            "--set",
            "seq_len=1024",
        )
        answer = call(*TINY, *more, "--json")
        assert answer.code == 1
        assert answer.json["status"] == "out_of_memory"
        assert answer.json["fits"] is False
        lack = answer.json["out_of_memory"]
        assert lack["over_bytes"] == lack["needed_bytes"] - lack["capacity_bytes"] > 0
        text = call(*TINY, *more).out
        assert f"rank {lack['rank']}" in text
        assert f"{lack['over_bytes']:,} bytes" in text
        assert lack["category"] in text
        assert "step would take" in " ".join(text.split())

    def test_a_limit_keeps_what_ran(self, call: Callable[..., Any]) -> None:
        answer = call(*TINY, "--set", "limits.num_events=3", "--out", "stopped", "--json")
        assert answer.code == 1
        assert answer.json["status"] == "limit"
        assert answer.json["step_time_s"] is None
        assert json.loads(Path("stopped/summary.json").read_text())["status"] == "limit"

    def test_an_interrupt_keeps_what_ran(self, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
        def stop(*args: object, **kwargs: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("clustersim.engine.engine.Engine.run", stop)
        answer = call(*TINY, "--out", "stopped", "--json")
        assert answer.code == 1
        assert answer.json["status"] == "interrupted"
        assert "trace.parquet" in files(Path("stopped"))

    def test_an_interrupt_before_there_is_anything(
        self, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*args: object, **kwargs: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("clustersim.study.inputs.load_topology", stop)
        answer = call(*TINY, "--json")
        assert (answer.code, answer.json) == (1, {"status": "interrupted"})

    def test_a_deadlock_names_who_waits(self, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
        def training_step(*args: object, **kwargs: object) -> Job:
            """Two ops that take from a pool which nobody gives back to."""
            program = Program("stuck")
            for name in ("first", "second"):
                op = Delay(name=name, kind="delay", measured_ns=10)
                program.add(op, stream=name, takes={"slot": 1})
            return Job(
                name="stuck",
                programs=(program,),
                program_of=np.zeros(1, dtype=np.int64),
                pools={"slot": Pool(capacity=1)},
                plan={"tp": 1, "pp": 1, "dp": 1, "schedule": "1f1b", "zero": 0, "recompute": "none"},
            )

        monkeypatch.setattr("clustersim.study.point.training_step", training_step)
        answer = call(*TINY, "--json")
        assert answer.code == 1
        assert answer.json["status"] == "deadlock"
        assert "second" in answer.json["message"]
        assert "deadlock: " in call(*TINY).out


class TestWritten:
    def test_nothing_without_out(self, call: Callable[..., Any], tmp_path: Path) -> None:
        call(*TINY)
        call(*TINY, "--json", "--set", "nodes=-1")
        assert files(tmp_path) == {"tiny.toml"}

    def test_a_folder_with_everything_that_repeats_the_run(self, call: Callable[..., Any]) -> None:
        answer = call(*TINY, "--out", "runs/a")
        assert answer.code == 0
        top = {"job.toml", "summary.json", "inputs.json", "versions.json", "trace.parquet"}
        top |= {"classes.parquet", "collectives.parquet"}
        found = files(Path("runs/a"))
        assert top | {"timeline.png", "trace.json"} <= found
        assert {"cards/workloads/models/gpt2.toml", "cards/topologies/parts/gpu/h100-sxm.toml"} <= found
        assert all(name.split("/")[0] in answer.out for name in found)
        assert Path("runs/a/timeline.png").read_bytes().startswith(b"\x89PNG")
        assert call("run", "runs/a", "--out", "runs/b").code == 0
        for name in found - {"summary.json"}:
            assert Path("runs/b", name).read_bytes() == Path("runs/a", name).read_bytes(), name
        first, second = (json.loads(Path(run, "summary.json").read_text()) for run in ("runs/a", "runs/b"))
        assert first | {"wall_s": 0} == second | {"wall_s": 0}

    def test_an_earlier_run_is_replaced_whole(self, call: Callable[..., Any]) -> None:
        call(*TINY, "--out", "runs/a")
        Path("runs/a/stray").write_text("left by somebody")
        assert call(*TINY, "--out", "runs/a").code == 0
        assert "stray" not in files(Path("runs/a"))
        assert [path.name for path in Path("runs").iterdir()] == ["a"]

    def test_somebody_elses_folder_is_left_alone(self, call: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.tex").write_text("x")
        answer = call(*TINY, "--out", "mine", "--set", "plan.tpp=1", "--json")
        assert answer.code == 2
        assert [error["key"] for error in answer.json["errors"]] == ["plan.tpp", "--out"]
        assert files(tmp_path / "mine") == {"thesis.tex"}

    def test_a_failed_write_leaves_no_trace(
        self, call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*args: object, **kwargs: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("clustersim.trace.formats.parquet.write", full)
        answer = call(*TINY, "--out", "runs/a", "--json")
        assert answer.code == 1
        assert answer.json["status"] == "ok"
        assert "No space left" in answer.err
        assert files(tmp_path) == {"tiny.toml"}
        assert not (tmp_path / "runs").exists()


class _Closed(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_folder_is_whole_though_nobody_reads_what_is_printed(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", _Closed())
        patched.setattr(sys, "stderr", io.StringIO())
        assert main((*TINY, "--out", "mine")) == 1
    assert {"job.toml", "summary.json", "trace.parquet", "versions.json"} <= files(Path("mine"))
    assert call("compare", "mine", "tiny.toml", "--json").json["changed_inputs"] == {}
