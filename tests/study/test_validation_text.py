"""What a user reads of a report."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from clustersim.study.validate_collectives import COLLECTIVES
from clustersim.study.validated_row import ValidatedRow
from clustersim.study.validation import ValidatedFile, Validation
from clustersim.study.validation_text import validation_text


def row(line: int, predicted: float | None, *, left_out: float | None = None, **labels: str) -> ValidatedRow:
    given = {"source": "lab", "collective": "all_reduce", "size": "1 MB to 10 MB", "communication": "nccl-x", **labels}
    return ValidatedRow(
        id=f"row {line}",
        line=line,
        family="file:lab",
        source=given["source"],
        metric="time",
        unit="us",
        measured=100.0,
        predicted=predicted,
        reason="" if predicted is not None else "no card stands for the hardware",
        assumptions=("card: x stands for y", "clock: 1", "clock: 2"),
        nbytes=2 << 20,
        labels=given,
        left_out_error=left_out,
    )


def report(*rows: ValidatedRow, file: str = "file.csv", left_out: str | None = None, notes: str = "") -> Validation:
    told = ValidatedFile(file=file, kind=COLLECTIVES, rows=rows, notes=(notes,) if notes else ())
    return Validation(files=(told,), left_out=left_out)


REPORT = report(
    *(row(2, 110.0), row(3, 70.0), *(row(line, None) for line in range(4, 10))),
    notes="columns that are not known here were left out: weather",
)


def lines(text: str, name: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip().startswith(name)]


def test_tables_say_how_many_and_how_far_off() -> None:
    text = validation_text(REPORT)
    assert text.startswith("file.csv: 8 rows, 2 predicted, 6 refused")
    assert lines(text, "lab") == [["lab", "8", "2", "20.0", "20.0", "28.0", "-10.0", "-30.0", "3"]]
    assert lines(text, "nccl-x") == [["nccl-x", "8", "2", "20.0", "20.0", "28.0", "-10.0", "-30.0", "3"]]
    titles = re.findall(r"^(?:by \w+|totals|refused|assumed)", text, re.MULTILINE)
    assert titles == ["by source", "by collective", "by size", "by communication", "totals", "refused", "assumed"]
    assert "6  no card stands for the hardware (lines 4, 5, 6, 7, ...)" in text
    assert "2  the program's clock" in text
    assert "warning: columns that are not known" in text


def test_one_table_when_asked_for() -> None:
    text = validation_text(REPORT, "collective")
    assert re.findall(r"^by (\w+)", text, re.MULTILINE) == ["collective"]


def test_nothing_predicted_is_no_error() -> None:
    text = validation_text(report(row(2, None)))
    assert lines(text, "lab") == [["lab", "1", "0", "-", "-", "-", "-", "-", "-"]]
    assert "assumed" not in text


def test_what_was_left_out_stands_beside() -> None:
    text = validation_text(report(row(2, 110.0, left_out=0.4), row(3, 90.0, left_out=-0.2), left_out="group"))
    assert lines(text, "lab") == [["lab", "2", "2", "10.0", "10.0", "10.0", "+0.0", "+10.0", "2", "30.0"]]
    assert "calibrated without the row's group" in text


@pytest.mark.parametrize("left_out", [None, "group"])
@pytest.mark.parametrize("factor", [1.0, 7.0, 1e4, 1e9])
def test_at_most_80_columns(left_out: str | None, factor: float) -> None:
    long = "a laboratory with a name that goes on for longer than any table is wide, with an address"
    rows = tuple(row(10**5 + k, 100 * factor, left_out=factor, source=long, collective=f"kind {k}") for k in range(3))
    text = validation_text(report(*rows, left_out=left_out))
    assert max(map(len, text.splitlines())) <= 80
    assert long in " ".join(text.split())
    heads = [line for line in text.splitlines() if " rows" in line and "median" in line]
    ends = {len(line) for line in heads}
    assert ends == {80}


def test_several_files_stand_in_one_table() -> None:
    one, other = (
        report(replace(row(2, p), file=f, family=f"{f}:lab")).files[0] for f, p in (("a", 110.0), ("b", None))
    )
    text = validation_text(Validation(files=(one, replace(other, file="b.csv"))))
    assert text.startswith("2 files: 2 rows, 1 predicted, 1 refused")
    assert lines(text, "lab") == [
        ["lab", "1", "1", "10.0", "10.0", "10.0", "+10.0", "+10.0", "2"],
        ["lab", "1", "0", "-", "-", "-", "-", "-", "-"],
    ]
    assert lines(text, "b.csv")[0][1:3] == ["1", "0"]
    assert "1  no card stands for the hardware (b line 2)" in text
    assert "collectives: 1 MiB and above" in text
