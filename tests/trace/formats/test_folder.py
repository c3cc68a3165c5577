"""Run folders: whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.trace.formats.folder import MARK, RunFolder, fresh, is_run_folder, refuse_folder


@pytest.fixture(scope="module")
def result() -> cs.Result:
    """A rank that does two things."""
    program = cs.Program("work")
    for k in range(2):
        program.add(cs.Delay(name=f"op {k}", kind="delay", measured_ns=10), stream="compute")
    job = cs.Job(name="small", programs=(program,), program_of=np.zeros(1, np.int64), plan={"tp": 1})
    return cs.simulate(cs.load_topology("dgx-h100"), job)


def test_what_is_written_is_read(result: cs.Result, tmp_path: Path) -> None:
    assert result.write(tmp_path / "run") == tmp_path / "run"
    folder = RunFolder(tmp_path / "run")
    assert is_run_folder(folder.path)
    assert folder.summary == cs.summary(result)
    assert folder.inputs == json.loads(json.dumps(result.inputs))
    pd.testing.assert_frame_equal(folder.trace, result.trace)
    pd.testing.assert_frame_equal(pd.read_parquet(folder.path / "classes.parquet"), result.classes)
    pd.testing.assert_frame_equal(folder.collectives, result.collectives)
    assert json.loads((folder.path / MARK).read_text())["clustersim"]


def test_a_run_folder_is_replaced_and_nothing_else_is(result: cs.Result, tmp_path: Path) -> None:
    result.write(tmp_path / "run")
    (tmp_path / "run/stray").touch()
    result.write(tmp_path / "run")
    assert not (tmp_path / "run/stray").exists()
    (tmp_path / "mine").mkdir()
    result.write(tmp_path / "mine")  # an empty folder is nobody's
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.tex").touch()
    (tmp_path / "file").touch()
    for name in ("full", "file", "file/below"):
        with pytest.raises(BadInput):
            result.write(tmp_path / name)
    assert sorted(os.listdir(tmp_path / "full")) == ["thesis.tex"]
    assert sorted(os.listdir(tmp_path)) == ["file", "full", "mine", "run"]


def half_written(folder: Path, error: type[BaseException]) -> None:
    with fresh(folder) as place:
        (place / "half").touch()
        raise error


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    with fresh(tmp_path / "run") as place:
        (place / MARK).write_text("{}")
        (place / "old").touch()
    for error in (RuntimeError, KeyboardInterrupt):
        for name in ("run", "new/deep/run"):
            with pytest.raises(error):
                half_written(tmp_path / name, error)
    assert sorted(os.listdir(tmp_path / "run")) == ["old", MARK]
    assert os.listdir(tmp_path) == ["run"]


def test_an_old_folder_comes_back_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh(tmp_path / "run") as place:
        (place / MARK).write_text("{}")
    rename = Path.rename

    def stubborn(self: Path, target: Path) -> Path:
        if target.name == "run" and not self.name.endswith(".old"):
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", stubborn)
    with pytest.raises(OSError, match="no"), fresh(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path) == ["run"]
    assert (tmp_path / "run" / MARK).is_file()


def test_a_folder_that_cannot_be_made_is_told_before_the_run() -> None:
    (fault,) = refuse_folder(Path("/proc/nowhere/run"))
    assert fault.key == "--out"


@pytest.mark.parametrize(
    ("name", "content"),
    [("summary.json", None), ("summary.json", "{"), ("summary.json", "[]"), ("inputs.json", "\xff")],
)
def test_broken_folders(result: cs.Result, tmp_path: Path, name: str, content: str | None) -> None:
    result.write(tmp_path / "run")
    path = tmp_path / "run" / name
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(BadInput):
        getattr(RunFolder(tmp_path / "run"), name.partition(".")[0])


def test_a_folder_without_a_trace(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        _: Any = RunFolder(tmp_path).trace
    assert error.value.faults[0].key == "trace.parquet"
