"""The published systems of ``clustersim reproduce``: each number within its tolerance, each miss as it is told.

What is held, how far and why it is missed stands with the systems. A miss is expected; once it is gone, its reason must
go too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from clustersim.study.reproduce import SYSTEMS, Outcome, Quantity, System, find_system, reproduce
from clustersim.study.reproduce.page import PAGE, rows

ROOT = Path(__file__).parents[2]
SIMULATED = [system for system in SYSTEMS if system.quantities]


@cache
def outcomes(number: str) -> tuple[Outcome, ...]:
    ((_, found),) = reproduce([find_system(number)]).outcomes
    return found


def held() -> list[object]:
    return [
        pytest.param(
            system,
            one,
            id=f"{system.number}: {one.name}",
            marks=[pytest.mark.xfail(strict=True, reason=one.reason, raises=AssertionError)] if one.reason else [],
        )
        for system in SIMULATED
        for one in system.quantities
        if one.held
    ]


@pytest.mark.parametrize(("system", "quantity"), held())
def test_what_is_held(system: System, quantity: Quantity) -> None:
    (found,) = (outcome for outcome in outcomes(system.number) if outcome.quantity is quantity)
    assert found.within, f"published {quantity.published}, simulated {found.simulated} {quantity.unit}"


@pytest.mark.parametrize("system", [system for system in SIMULATED if not system.slow], ids=lambda system: system.name)
def test_the_page_has_what_comes_out(system: System) -> None:
    page = (ROOT / PAGE).read_text().splitlines()
    missing = [row for row in rows(system, outcomes(system.number)) if row not in page]
    assert missing == [], "python -m clustersim.study.reproduce writes the table again"
