"""Files that are whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clustersim.trace.formats.whole_file import refuse_file, whole_file


def test_a_file_takes_its_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_text("old")
    with whole_file(path) as place:
        place.write_text("new")
        assert (place.name, path.read_text()) == (path.name, "old")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == [path.name]


def half_written(path: Path, error: type[BaseException]) -> None:
    with whole_file(path) as place:
        place.write_text("half")
        raise error


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_fails_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "old").write_text("old")
    for name in ("old", "new"):
        with pytest.raises(error):
            half_written(tmp_path / name, error)
    assert os.listdir(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with whole_file(tmp_path / "link") as place:
        place.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="a device of Unix")
def test_a_device_is_written_to_itself() -> None:
    assert refuse_file(Path("/dev/null"), "trace.json") == []
    with whole_file("/dev/null") as place:
        assert place == Path("/dev/null")


def test_where_a_file_cannot_go(tmp_path: Path) -> None:
    assert [fault.nearest for fault in refuse_file(tmp_path, "trace.json")] == [str(tmp_path / "trace.json")]
    assert [fault.rule for fault in refuse_file(tmp_path / "a/b", "")] == ["must be in a folder that exists"]
    assert refuse_file(tmp_path / "a", "") == []
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder that nobody can write")
def test_a_folder_that_cannot_be_written_is_named() -> None:
    (fault,) = refuse_file(Path("/proc/trace.json"), "trace.json")
    assert fault.rule.startswith("must be in a folder that can be written: /proc: ")


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # as a full disk: no file may be longer
from clustersim.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a limit of Unix")
@pytest.mark.parametrize(
    "command",
    [
        ["export", "mpt-7b-fsdp", "--format", "chrome"],
        ["export", "mpt-7b-fsdp", "--format", "parquet"],
        ["export", "mpt-7b-fsdp", "--format", "hta"],
        ["plot", "topology", "dgx-h100"],
    ],
    ids=lambda command: "-".join(command[:1] + command[-1:]),
)
def test_a_full_disk_leaves_nothing(tmp_path: Path, command: list[str]) -> None:
    out = "figure.svg" if command[0] == "plot" else "trace"
    tokens = [sys.executable, "-c", FULL, *command, "--out", out]
    done = subprocess.run(tokens, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, os.listdir(tmp_path)) == (1, [])
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
