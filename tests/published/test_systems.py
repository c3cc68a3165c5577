"""The published systems of ``clustersim reproduce``: each number within its tolerance, each miss as it is told.

What is held, how far and why it is missed stands with the systems.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from clustersim.study.reproduce import SYSTEMS, Outcome, Quantity, System, find_system, reproduce
from clustersim.study.reproduce.page import PAGE, rows

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"11": "test_frontier.py", "18": "test_scale_up_or_out.py"}
"""Systems whose runs other tests share."""
HELD = [system for system in SYSTEMS if system.quantities and system.number not in ELSEWHERE]


@cache
def outcomes(number: str) -> tuple[Outcome, ...]:
    ((_, found),) = reproduce([find_system(number)]).outcomes
    return found


def test_what_is_held(system: System, quantity: Quantity) -> None:
    (found,) = (outcome for outcome in outcomes(system.number) if outcome.quantity is quantity)
    assert found.within, f"published {quantity.published}, simulated {found.simulated} {quantity.unit}"


@pytest.mark.parametrize("file", ELSEWHERE.values())
def test_the_others_are_held_elsewhere(file: str) -> None:
    assert "def test_what_is_held(" in Path(__file__).with_name(file).read_text(encoding="utf-8")


@pytest.mark.parametrize("system", [system for system in HELD if not system.slow], ids=lambda system: system.name)
def test_the_page_has_what_comes_out(system: System) -> None:
    page = (ROOT / PAGE).read_text().splitlines()
    missing = [row for row in rows(system, outcomes(system.number)) if row not in page]
    assert missing == [], "python -m clustersim.study.reproduce writes the table again"


def test_the_readme_says_so(readme_row: Callable[[str], list[Any]]) -> None:
    (lost,) = (outcome for outcome in outcomes("6") if outcome.quantity.name.startswith("throughput of a GPU"))
    assert [lost.simulated] == readme_row("Llama 2 7B under FSDP, from 128 to 2,048 H100")
