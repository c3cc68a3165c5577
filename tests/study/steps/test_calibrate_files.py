"""Rows that validate wrote -> a card of what steps miss."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from clustersim.analysis.step_residual import load_step_residual
from clustersim.faults import BadInput
from clustersim.study.steps.calibrate_files import calibrate_step_files

HEADER = "id,source,metric,unit,measured,predicted,spread,confidence,how_obtained"


def rows(path: Path, logs: dict[str, list[float]]) -> Path:
    lines = [
        f"{source}{k},{source},iteration_time,s,{math.exp(log)},1.0,0.01,high,read"
        for source, of in logs.items()
        for k, log in enumerate(of)
    ]
    path.write_text("\n".join([HEADER, *lines, "x,other,iteration_time,s,1,,,high,read"]) + "\n")
    return path


def test_a_card_that_loads_again(tmp_path: Path) -> None:
    made = calibrate_step_files([rows(tmp_path / "rows.csv", {"a": [0.1, 0.12], "b": [-0.1], "c": [0.1], "d": [-0.1]})])
    assert (made.num_rows, made.num_sources) == (5, 4)
    assert 0 < made.inside <= 1
    card = tmp_path / "mine.toml"
    card.write_text(made.text)
    again = load_step_residual(str(card))
    assert again.spread == pytest.approx(made.residual.spread, rel=0.05)
    assert "5 steps of 4 sources" in again.sources["spread"]


def test_every_fault_at_once(tmp_path: Path) -> None:
    bad, short = tmp_path / "bad.csv", tmp_path / "short.csv"
    bad.write_text(f"{HEADER}\na,s,iteration_time,s,one,nan,0.1,high,read\n")
    short.write_text("id,source\na,s\n")
    with pytest.raises(BadInput) as error:
        calibrate_step_files([bad, short])
    assert [fault.key for fault in error.value.faults] == [
        "line 2, column measured",
        "line 2, column predicted",
        *(f"column {name}" for name in ("metric", "measured", "predicted", "spread")),
    ]


def test_two_sources_are_too_few(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="three sources"):
        calibrate_step_files([rows(tmp_path / "rows.csv", {"a": [0.1], "b": [-0.1]})])
