"""No change makes predictions of the library's measurements worse unseen.

``accuracy_budgets.csv`` is the record of ``python -m clustersim.study.accuracy_page``. By default a fixed part of every
family is predicted; ``pytest -m accuracy`` predicts all rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import clustersim as cs
from clustersim.library.measurements import measurement_files
from clustersim.study.accuracy_page import BUDGETS, FIGURES, PAGE, page, reasons
from clustersim.study.accuracy_part import part_ids, write_part
from clustersim.study.accuracy_record import RecordedErrors, read_record
from clustersim.study.row_errors import error_fields
from clustersim.study.validated_row import ValidatedRow, grouped

ROOT = Path(__file__).parents[2]
FILES = {path.name: path for path in measurement_files()}
WORSE = 0.02
"""Part of a recorded error by which a new one may be above it; at least 0.2 percentage points."""
BETTER = 0.2
"""Part by which it may be below before it has to be recorded again; at least 1 percentage point."""


@pytest.fixture(scope="module")
def records() -> list[RecordedErrors]:
    return read_record(ROOT / BUDGETS)


def complaints(
    rows: Sequence[ValidatedRow],
    records: Sequence[RecordedErrors],
    of: Callable[[RecordedErrors], tuple[int, float | None]],
) -> list[str]:
    """What is worse than recorded, or so much better that it must be recorded again; ``of`` gives what is recorded."""
    recorded = {one.name: of(one) for one in records}
    found = []
    for family, members in grouped(rows, "family").items():
        told = error_fields(members)
        count, before = recorded.get(family, (0, None))
        after = told["mape"]
        if told["num_predicted"] != count:
            found.append(f"{family}: {told['num_predicted']} rows predicted, recorded {count}")
        elif after is not None and before is not None:
            if after > before + max(0.002, WORSE * before):
                found.append(f"{family}: {after:.2%}, worse than the recorded {before:.2%}")
            if after < before - max(0.01, BETTER * before):
                found.append(f"{family}: {after:.2%}, better than the recorded {before:.2%}: record it again")
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_part_is_as_good_as_recorded(name: str, records: list[RecordedErrors], tmp_path: Path) -> None:
    for other in FILES.values():  # rows of memory take their configuration from the file of steps beside them
        shutil.copy(other, tmp_path)
    rows = cs.validate(write_part(FILES[name], tmp_path)).rows
    mine = [one for one in records if one.file == name and one.by == "family"]
    assert complaints(rows, mine, lambda one: (one.part_rows, one.part_mape)) == []


@pytest.mark.accuracy
@pytest.mark.parametrize("name", FILES)
def test_all_rows_are_as_good_as_recorded(name: str, records: list[RecordedErrors]) -> None:
    rows = cs.validate(FILES[name]).rows
    mine = [one for one in records if one.file == name and one.by == "family"]
    assert complaints(rows, mine, lambda one: (one.num_predicted, one.mape)) == []


def test_the_record_is_of_the_rows_there_are(records: list[RecordedErrors]) -> None:
    assert {one.file for one in records} == set(FILES)
    for name, path in FILES.items():
        (whole,) = (one for one in records if one.file == name and one.by == "all")
        assert whole.num_rows == len(path.read_text(encoding="utf-8").splitlines()) - 1
        assert 0 < whole.part_rows <= len(part_ids(path))


def test_the_page_is_that_of_the_record(records: list[RecordedErrors]) -> None:
    written = page(records, reasons())
    assert (ROOT / PAGE).read_text(encoding="utf-8") == written, "record again, or write the page from the record"
    for figures in FIGURES.values():
        for figure in figures:
            assert 0 < (ROOT / PAGE.parent / figure).stat().st_size < 150_000


def test_what_is_worse_or_much_better_is_named() -> None:
    def row(predicted: float | None) -> ValidatedRow:
        return ValidatedRow(
            id="a", line=2, family="f", source="f", metric="time", unit="s", measured=1.0, predicted=predicted
        )

    recorded = [
        RecordedErrors(
            file="x",
            by="family",
            name="f",
            num_rows=1,
            num_predicted=1,
            mape=0.1,
            median_ape=0.1,
            p90_ape=0.1,
            bias=0.1,
        )
    ]

    def told(predicted: float | None) -> list[str]:
        return complaints([row(predicted)], recorded, lambda one: (one.num_predicted, one.mape))

    assert told(1.1) == told(1.0801) == told(0.9) == told(1.1019) == []
    assert "worse" in told(1.103)[0]
    assert "record it again" in told(1.079)[0]
    assert "0 rows predicted, recorded 1" in told(None)[0]
