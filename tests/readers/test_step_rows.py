"""Measured steps as a CSV: what is read, and what is refused with its line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.readers import step_rows

HEADER = "id,source,hardware,gpus,metric,value,unit,layers,gated_mlp,extra"


def write(path: Path, *rows: str) -> Path:
    file = path / "steps.csv"
    file.write_text("\n".join([HEADER, *rows]) + "\n")
    return file


def test_fields_and_unknown_columns(tmp_path: Path) -> None:
    rows, notes = step_rows.read(
        write(tmp_path, "a,lab,H100,8,iteration_time,1.5,s,32.0,0,x", "b,lab,H100,,mfu,40,percent,,,")
    )
    assert [(row.id, row.line, row.gpus, row.layers, row.gated_mlp, row.value) for row in rows] == [
        ("a", 2, 8, 32, 0, 1.5),
        ("b", 3, None, None, None, 40.0),
    ]
    assert rows[0].seq_len is None
    assert rows[0].notes == ""
    assert notes == ["columns that are not known here were left out: extra"]


def test_every_fault_at_once(tmp_path: Path) -> None:
    bad = (
        "a,,H100,0,iteration_time,1,s,1.5,,",
        "a,lab,H100,8,iteration_time,-1,s,,7,",
        "c,lab,H100,8,mfu,nan,percent,,,",
    )
    with pytest.raises(BadInput) as error:
        step_rows.read(write(tmp_path, *bad))
    assert [fault.key for fault in error.value.faults] == [
        "line 2, column source",
        "line 2, column gpus",
        "line 2, column layers",
        "line 3, column value",
        "line 3, column gated_mlp",
        "line 3, column id",
        "line 4, column value",
    ]


@pytest.mark.parametrize(
    ("column", "text", "nearest"),
    [
        ("year", "99999", 2100),
        ("year", "99", 2000),
        ("zero_stage", "4", 3),
        ("gated_mlp", "7", 1),
        ("hidden", "-4096", 1),
        ("layers", "1e40", 2**53),
        ("gpus", "7.6", 8),
        ("gpus", "eight", None),
    ],
)
def test_counts_out_of_range_have_a_nearest(tmp_path: Path, column: str, text: str, nearest: int | None) -> None:
    names = ("source", "hardware", "metric", "value", "unit", "gpus")
    given = dict.fromkeys(names, "1") | {column: text}
    file = tmp_path / "steps.csv"
    file.write_text(f"{','.join(given)}\n{','.join(given.values())}\n")
    with pytest.raises(BadInput) as error:
        step_rows.read(file)
    (fault,) = error.value.faults
    assert (fault.key, fault.value, fault.nearest) == (f"line 2, column {column}", text, nearest)


def test_a_table_of_something_else(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("hardware,gpus,collective\nH100,8,all_reduce\n")
    assert not step_rows.detect(file)
    with pytest.raises(BadInput) as error:
        step_rows.read(file)
    assert {fault.key for fault in error.value.faults} == {
        f"line 1, column {name}" for name in ("source", "metric", "value", "unit")
    }


@pytest.mark.parametrize("text", ["", HEADER + "\n", HEADER + "\na,b\n"])
def test_broken_files(tmp_path: Path, text: str) -> None:
    file = tmp_path / "broken.csv"
    file.write_text(text)
    with pytest.raises(BadInput):
        step_rows.read(file)
