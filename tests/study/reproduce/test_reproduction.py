"""Runs are shared, processes agree with one, and text and page say what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.study.reproduce import Quantity, Reproduction, Runs, System, reproduce
from clustersim.study.reproduce.page import BEGIN, END, PAGE, rows, write_status
from clustersim.study.reproduce.text import reproduction_text

COUNT: list[int] = []


def counted(value: int) -> int:
    COUNT.append(value)
    return value


def simulated(runs: Runs) -> float:
    return float(runs.once(counted, 3))


def quantity(name: str, published: float, *, unit: str = "s", tolerance: float = 0.1, reason: str = "") -> Quantity:
    return Quantity(
        name=name,
        published=published,
        unit=unit,
        grade="S",
        tolerance=tolerance,
        job="a-job",
        simulated=simulated,
        reason=reason,
    )


OPEN = Quantity(name="power", published=700, unit="W", grade="S", reason="no power here")
MADE = System(
    number="21",
    name="made",
    paper="A Paper",
    year=2025,
    arxiv="2501.00001",
    quantities=(
        quantity("a step of a job with a name that is far too long for its column", 3.1),
        quantity("share", 50.0, unit="%", reason="too small by far"),
        OPEN,
    ),
)
LATER = System(number="22", name="later", paper="Another", year=2026, arxiv="")


@pytest.fixture(scope="module")
def found() -> Reproduction:
    COUNT.clear()
    return reproduce([MADE, LATER])


def test_a_run_is_made_once(found: Reproduction) -> None:
    assert COUNT == [3]


def test_the_summary_of_a_job_is_kept_by_its_values() -> None:
    runs = Runs()
    first = runs.step("inception-v3-dgx1", {"graph.devices": 1, "graph.placement": "column"})
    assert runs.step("inception-v3-dgx1", {"graph.placement": "column", "graph.devices": 1}) is first
    assert runs.step("inception-v3-dgx1")["step_time_s"] != first["step_time_s"]


def test_json(found: Reproduction) -> None:
    step, share, power, later = found.answer()["systems"]
    assert step == {
        "number": "21",
        "name": "made",
        "job": "a-job",
        "quantity": MADE.quantities[0].name,
        "unit": "s",
        "relation": "=",
        "published": 3.1,
        "simulated": 3.0,
        "error": pytest.approx(-0.1 / 3.1),
        "grade": "S",
        "tolerance": 0.1,
        "within": True,
        "reason": None,
    }
    assert (share["error"], share["within"], share["reason"]) == (pytest.approx(-0.47), False, "too small by far")
    assert (power["simulated"], power["within"], power["job"]) == (None, None, None)
    assert set(later) == set(step)
    assert {name for name, value in later.items() if value is not None} == {"number", "name", "reason"}
    assert later["reason"] == "not simulated yet"


def test_several_processes_give_the_same() -> None:
    done: list[int] = []
    systems = [System(number=str(k), name=f"s{k}", paper="", year=2025, arxiv="", quantities=(OPEN,)) for k in range(3)]
    assert reproduce([*systems, LATER], processes=2, progress=done.append) == reproduce([*systems, LATER])
    assert done == [1, 2, 3, 4]


def test_text_has_80_columns_and_every_number(found: Reproduction) -> None:
    text = reproduction_text(found)
    assert max(map(len, text.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "22 later: not simulated yet" in lines
    assert "share 50.0 % 3.0 % -47.0 pt S no" in lines
    assert "long for its column 3.1 s 3 s -3.2 % S yes" in lines
    assert "power 700 W - - S -" in lines
    assert "21 share: too small by far" in lines


def test_the_page_is_written_between_its_marks(tmp_path: Path) -> None:
    (tmp_path / PAGE.parent).mkdir()
    (tmp_path / PAGE).write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    for _ in range(2):
        text = write_status([MADE, LATER], tmp_path).read_text()
        assert text.startswith(f"before\n\n{BEGIN}\n\n| ")
        assert text.endswith(f"\n\n{END}\n\nafter\n")
        assert "old" not in text
        ((made, outcomes), _) = reproduce([MADE, LATER]).outcomes
        assert set(rows(made, outcomes)) <= set(text.splitlines())
        assert "- **21**, share: too small by far." in text.splitlines()


def test_a_page_without_marks_is_refused_before_anything_runs(tmp_path: Path) -> None:
    COUNT.clear()
    with pytest.raises(BadInput, match="checkout"):
        write_status([MADE], tmp_path)
    assert COUNT == []
