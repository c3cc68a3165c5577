"""``calibrate``: what it refuses before it works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_a_folder_that_cannot_be_is_told_first(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/below"):
        answer = call("calibrate", "nccl", "none.log", "--topology", "dgx-h100", "--out", out, "--json")
        assert answer.code == 2
        assert [(error["key"], error["value"]) for error in answer.json["errors"]] == [("--out", out)]
    assert {path.name for path in tmp_path.iterdir()} == {"file", "tiny.toml"}
    assert (tmp_path / "file").read_text() == "mine"
