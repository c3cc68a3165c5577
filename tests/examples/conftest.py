"""The commands of docs/questions.md, thread by thread."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clustersim.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"


@pytest.fixture
def asked(one_process: None, capsys: pytest.CaptureFixture[str]) -> Callable[[str], list[dict[str, Any]]]:
    """Run the commands below a heading of the page with ``--json``; their answers in order."""

    def answers(thread: str) -> list[dict[str, Any]]:
        section = PAGE.read_text().split(f"\n## {thread}\n")[1].split("\n## ")[0]
        commands = re.findall(r"^\$ clustersim (.*)$", section.replace("\\\n", " "), re.MULTILINE)
        assert commands
        found = []
        for command in commands:
            main([*shlex.split(command), "--json"])
            found.append(json.loads(capsys.readouterr().out))
        return found

    return answers
