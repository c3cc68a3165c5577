"""What published systems are held to: their numbers, and the rows of the README's table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from clustersim.study.reproduce import System

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SYSTEMS = README[README.index("holds published systems against") : README.index("## Kernels of one's own GPU")]
ROWS = {cells[0].strip(): cells[2] for line in SYSTEMS.splitlines() if len(cells := line.strip("|").split("|")) == 3}


@pytest.fixture(scope="session")
def readme_rows() -> frozenset[str]:
    """Names of the rows."""
    return frozenset(ROWS.keys() - {"", "---"})


@pytest.fixture(scope="session")
def readme_row() -> Callable[[str], list[Any]]:
    """What a row of the table says comes out, each number within 2 % or half of its last digit."""

    def numbers(name: str) -> list[Any]:
        told = [float(number.replace(",", "")) for number in re.findall(r"-?[\d,.]*\d", ROWS[name])]
        return [pytest.approx(value, rel=0.02, abs=0.5) for value in told]

    return numbers


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``system``, ``quantity``: all that is held of the module's ``HELD``."""
    if {"system", "quantity"} <= set(metafunc.fixturenames):
        metafunc.parametrize(("system", "quantity"), list(held(metafunc.module.HELD)))


def held(systems: Iterable[System]) -> Iterable[Any]:
    """A miss is expected; once it is gone, its reason must go too."""
    for system in systems:
        for one in system.quantities:
            if one.held:
                miss = [pytest.mark.xfail(strict=True, reason=one.reason, raises=AssertionError)] if one.reason else []
                yield pytest.param(system, one, id=f"{system.number}: {one.name}", marks=miss)
