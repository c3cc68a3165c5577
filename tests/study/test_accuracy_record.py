"""What is recorded of errors, the part that tests predict, and the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.study.accuracy_page import FIGURES, main, page, reasons
from clustersim.study.accuracy_part import part_ids, write_part
from clustersim.study.accuracy_record import RecordedErrors, read_record, record, write_record
from clustersim.study.validate_collectives import COLLECTIVES
from clustersim.study.validated_row import ValidatedRow
from clustersim.study.validation import ValidatedFile, Validation


def row(name: str, predicted: float | None, *, family: str = "f", confidence: str = "high") -> ValidatedRow:
    return ValidatedRow(
        id=name,
        file="collectives.csv",
        line=2,
        family=f"collectives:{family}",
        source=family,
        metric="time",
        unit="us",
        measured=100.0,
        predicted=predicted,
        reason="" if predicted else "no size",
        labels={"communication": "x", "confidence": confidence},
        left_out_error=0.5 if predicted else None,
    )


ROWS = (
    row("a", 110.0),
    row("b", 70.0, confidence="low"),
    row("c", None),
    row("d", 100.0, family="g"),
)
REPORT = Validation(files=(ValidatedFile(file="collectives.csv", kind=COLLECTIVES, rows=ROWS),), left_out="source")


@pytest.fixture
def records() -> list[RecordedErrors]:
    return record(REPORT, parts={"collectives.csv": frozenset("ac")}, shapes={"a": -0.2})


def test_errors_of_all_rows_and_of_each_family(records: list[RecordedErrors]) -> None:
    assert [(one.by, one.name) for one in records] == [
        ("all", ""),
        ("family", "collectives:f"),
        ("family", "collectives:g"),
        ("communication", "x"),
    ]
    whole, family = records[:2]
    assert (whole.num_rows, whole.num_predicted, whole.refused) == (4, 3, "1 no size")
    assert whole.mape == pytest.approx((0.1 + 0.3) / 3)
    assert (family.worst, family.worst_error) == ("b", pytest.approx(-0.3))
    assert (family.sure_rows, family.sure_mape) == (1, pytest.approx(0.1))
    assert (family.part_rows, family.part_mape) == (1, pytest.approx(0.1))
    assert (family.left_out_mape, family.shape_mape) == (pytest.approx(0.5), pytest.approx(0.2))


def test_what_is_written_is_read_again(records: list[RecordedErrors], tmp_path: Path) -> None:
    write_record(records, tmp_path / "record.csv")
    found = read_record(tmp_path / "record.csv")
    write_record(found, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "record.csv").read_text()
    assert found[0].mape == pytest.approx(records[0].mape, rel=1e-4)
    assert [(one.name, one.worst, one.regret, one.refused) for one in found] == [
        (one.name, one.worst, one.regret, one.refused) for one in records
    ]


def test_the_page_has_figures_refusals_and_reasons(records: list[RecordedErrors]) -> None:
    text = page(records, {"collectives": {"f": "a switch is slow"}})
    assert "| f | 3 | 2 | 20.0 | 20.0 | 28.0 | -10.0 | 10.0 | b | -30.0 | 50.0 | 20.0 | 20.0 |" in text
    assert "- 1 no size" in text
    assert "- **f** (20.0 %): a switch is slow" in text
    assert "- **x** (13.3 %): no reason has been found yet." in text
    assert "**g**" not in text
    assert all(f"]({figure})" in text for figure in FIGURES["collectives.csv"])


def test_the_library_has_reasons_by_file() -> None:
    files = {name.removesuffix(".csv") for name in FIGURES}
    assert set(reasons()) <= files
    assert all(isinstance(text, str) and text for of in reasons().values() for text in of.values())


def test_only_into_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        main(tmp_path)
    assert [Path(fault.value).name for fault in caught.value.faults] == ["docs", "published"]


def test_a_part_is_chosen_by_place(tmp_path: Path) -> None:
    rows = [f"{k},{'x' if k % 2 else ''},lab,{k}" for k in range(60)]
    source = tmp_path / "e2e_training.csv"
    source.write_text("\n".join(["id,family,source,value", *rows]) + "\n")
    assert part_ids(source) == {"0", "20", "40", "1", "21", "41"}
    (tmp_path / "part").mkdir()
    part = write_part(source, tmp_path / "part")
    assert part.read_text().splitlines() == ["id,family,source,value", *(rows[k] for k in (0, 1, 20, 21, 40, 41))]
    whole = tmp_path / "mine.csv"
    whole.write_text(source.read_text())
    assert len(part_ids(whole)) == 60


def test_intervals_are_told_where_there_are_any(records: list[RecordedErrors]) -> None:
    assert "| inside |" not in page(records, {})
    rows = [replace(one, interval=(60.0, high)) for one, high in zip(ROWS[:2], (99.0, 120.0), strict=True)]
    report = replace(REPORT, files=(replace(REPORT.files[0], rows=tuple(rows)),))
    told = record(report, parts={"collectives.csv": frozenset()}, shapes={})
    assert told[0].inside == 0.5
    assert "| inside |" in page(told, {})
