"""The command line in this process: quick, and its output in hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clustersim.cli import main

JOB = """\
name = "tiny"
description = "GPT-2 on one node"
model = "gpt2"
topology = "dgx-h100"
global_batch = 16
seq_len = 128

[plan]
dp = 8
"""


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON value."""
        return json.loads(self.out)


@pytest.fixture
def call(
    one_process: None, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """Run a command in an empty folder that holds ``tiny.toml``."""
    (tmp_path / "tiny.toml").write_text(JOB)
    monkeypatch.chdir(tmp_path)

    def called(*tokens: str) -> Answer:
        code = main(tokens)
        return Answer(code, *capsys.readouterr())

    return called
