"""What commands print, and a real interrupt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clustersim.analysis.report import bytes_text, seconds_text, table
from clustersim.cli.output import described, fault_line, pairs, print_json, progress, written_text
from clustersim.faults import Fault


def test_a_fault_is_one_line_without_what_there_is_not() -> None:
    full = Fault(file="a.toml", key="plan.tp", value=7, rule="must divide 32", nearest=8)
    assert fault_line(full) == "a.toml: plan.tp: 7 must divide 32; nearest: 8"
    assert fault_line(Fault(key="model", value=None, rule="must be given")) == "model: must be given"
    assert fault_line(Fault(key="a", value=1, rule="must be true", nearest=True)) == "a: 1 must be true; nearest: true"
    assert len(fault_line(Fault(key="x", value="y" * 10_000, rule="is long"))) < 250
    assert "\n" not in fault_line(Fault(key="x", value="a\nb", rule="is two lines"))


def test_json_has_no_number_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": float("nan"), "b": (1, Path("x/y")), 3: {"c": float("-inf")}})
    assert json.loads(capsys.readouterr().out) == {"a": "nan", "b": [1, "x/y"], "3": {"c": "-inf"}}


def test_a_table_has_columns() -> None:
    assert table([("a", "1"), ("long", "22")], right=(1,)) == "  a      1\n  long  22"
    assert table([]) == ""


def test_long_texts_go_on_further_in() -> None:
    text = written_text(Path("runs/base"), (f"file-{k}.parquet" for k in range(20)))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line.startswith("    file-") for line in lines[1:])
    assert " ".join(text.split()).endswith("file-18.parquet, file-19.parquet")
    assert described("  name  ", "word " * 30).splitlines()[1].startswith("        word")
    assert described("  name  ", "") == "  name"
    assert pairs([("a", "1"), ("long", "word " * 20)]).splitlines()[:2] == ["a     1", "long"]
    assert pairs([]) == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.0, "0 ns"), (2e-9, "2 ns"), (1.5e-3, "1.5 ms"), (3600.0, "3600 s")]
)
def test_times(seconds: float | None, text: str) -> None:
    assert seconds_text(seconds) == text
    assert bytes_text(2**30) == "1.0 GiB"


def test_progress_shows_on_a_terminal_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with progress("job") as at:
        assert at is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("job") as at:
        assert at is not None
        at(1.25)
        time.sleep(0.15)  # a bar is drawn ten times a second at most
        at(2.5)
    assert "job: 2.500 s simulated" in capsys.readouterr().err


def test_an_interrupt_of_a_running_simulation(tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-c", "import sys; from clustersim.cli import main; sys.exit(main())"),
        *("run", "llama-3-70b-tp8-pp4", "--full", "--set", "steps=20", "--json"),
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        for _ in range(3):  # Python drops an interrupt that comes while it takes an object apart, as a user may see
            time.sleep(2)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert json.loads(out)["status"] == "interrupted"
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
