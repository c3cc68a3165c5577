"""The README does what it says: its Python and its commands are run, and what it shows is what they print.

Numbers in shown output stand for any numbers: they move with every calibration. Words do not.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from clustersim.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FENCE = re.compile(r"(?:<!-- (?P<note>[^>]*) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block and the comment above it."""

    kind: str
    note: str
    body: str

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Each command and the lines shown below it."""
        for part in re.split(r"^\$ ", self.body, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            yield command, [line for line in shown if line.strip()]


BLOCKS = [Block(found["kind"], found["note"] or "", found["body"]) for found in FENCE.finditer(README)]


def masked(line: str) -> str:
    """``line`` with its numbers and gaps made one."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*", "#", line)).strip()


def test_the_blocks_there_are() -> None:
    kinds = [block.kind for block in BLOCKS]
    assert {kind: kinds.count(kind) for kind in kinds} == {"sh": 2, "python": 1, "console": 7, "csv": 2}
    assert [block.note for block in BLOCKS if block.kind == "sh"] == ["first run", "test command"]


def test_the_python_runs(tmp_path: Path) -> None:
    (script,) = (block.body for block in BLOCKS if block.kind == "python")
    statements = [line for line in script.splitlines() if line.strip() and not line.startswith("import")]
    assert len(statements) <= 15
    subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=tmp_path, check=True, timeout=120)
    assert sorted(os.listdir(tmp_path)) == ["runs", "timeline.png"]


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.kind == "console"], ids=lambda block: block.note)
def test_the_commands_print_what_is_shown(
    block: Block,
    one_process: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in BLOCKS:
        if file.kind == "csv":
            (tmp_path / file.note).write_text(file.body)
    code = int(block.note.removeprefix("exit code ") or 0)
    for command, shown in block.commands():
        name, *tokens = shlex.split(command)
        assert name == "clustersim"
        found, (out, err) = main(tokens), capsys.readouterr()
        assert found == code, f"{command}\n{err}"
        printed = [masked(line) for line in (out + err).splitlines()]
        for line in shown:
            assert masked(line) in printed, f"{command}\nprints no line like: {line}\n{out}{err}"


def test_the_first_run_leaves_what_is_promised(tmp_path: Path) -> None:
    (line,) = (block.body.strip() for block in BLOCKS if block.note == "first run")
    assert "\n" not in line
    name, *tokens = shlex.split(line[line.index("bin/clustersim") + len("bin/") :])
    assert name == "clustersim"
    code = "import sys; from clustersim.cli import main; sys.exit(main())"
    subprocess.run([sys.executable, "-c", code, *tokens], cwd=tmp_path, check=True, timeout=120)
    for name in ("timeline.png", "trace.parquet", "trace.json", "job.toml"):
        assert (tmp_path / "runs/first" / name).is_file()


def test_null_fields_are_those_in_the_table() -> None:
    from clustersim.analysis.definitions import definitions

    rows = re.findall(r"^\| (`.*?) \|", README, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named <= set(definitions())
    assert {"message", "out_of_memory", "fits", "step_time_s", "mfu", "hfu", "tokens_per_s"} <= named


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_test_command_is_the_one_that_ci_runs() -> None:
    (line,) = (block.body.strip() for block in BLOCKS if block.note == "test command")
    assert (ROOT / line.split()[-1]).is_file()
    wanted = subprocess.run(
        ["awk", _awk((ROOT / ".ci/run").read_text()), "README.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert wanted.stdout.strip() == line


def _awk(script: str) -> str:
    found = re.search(r"awk '(.*?)' README.md", script)
    assert found is not None
    return found[1]
