"""Errors of the library's measurements as they are recorded: what pages show and tests hold the models to."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from clustersim.study.row_errors import error_fields
from clustersim.study.validated_row import ValidatedRow, grouped
from clustersim.study.validation import ValidatedFile, Validation

__all__ = ["RecordedErrors", "read_record", "record", "write_record"]

_TABLES: Mapping[str, tuple[str, ...]] = {
    "steps": ("family", "source"),
    "collectives": ("family", "communication"),
    "kernels": ("family", "device,kind"),
}
"""What rows of a kind are told by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedErrors:
    """Of some rows of a file; errors are fractions, None where there is none.

    Parameters
    ----------
    file : str
    by, name : str
        label that the rows share, and its value; ``all`` and nothing of all rows
    num_rows, num_predicted : int
    refused : str
        reasons with their numbers of rows: ``3 no size; 1 no time``
    mape, median_ape, p90_ape, bias : float, optional
    worst : str
        id of the row that is furthest off
    worst_error : float, optional
    sure_rows : int
        rows that were read where they were published and are not of low confidence, predicted ones
    sure_mape : float, optional
        of these
    num_sweeps : int
    rank_correlation, regret : float, optional
        of sweeps of layouts
    left_out_mape, left_out_median : float, optional
        under cards calibrated without what the row's own source measured
    shape_mape, shape_median : float, optional
        of kernels: under numbers fitted to other shapes
    inside : float, optional
        of predicted times and rates of steps: fraction in intervals made from other sources
    part_rows : int
        predicted rows of the part that tests predict
    part_mape : float, optional
        of these
    """

    file: str
    by: str
    name: str = ""
    num_rows: int
    num_predicted: int
    refused: str = ""
    mape: float | None
    median_ape: float | None
    p90_ape: float | None
    bias: float | None
    worst: str = ""
    worst_error: float | None = None
    sure_rows: int = 0
    sure_mape: float | None = None
    num_sweeps: int = 0
    rank_correlation: float | None = None
    regret: float | None = None
    left_out_mape: float | None = None
    left_out_median: float | None = None
    shape_mape: float | None = None
    shape_median: float | None = None
    inside: float | None = None
    part_rows: int = 0
    part_mape: float | None = None


def record(
    report: Validation, *, parts: Mapping[str, frozenset[str]], shapes: Mapping[str, float | None]
) -> list[RecordedErrors]:
    """Errors of a report that left sources out, by file: of all rows, and by what its kind is told by.

    Parameters
    ----------
    report : Validation
        of files whose rows have ids
    parts : Mapping[str, frozenset[str]]
        file -> ids of :func:`clustersim.study.accuracy_part.part_ids`
    shapes : Mapping[str, float or None]
        id of a kernel -> its error under numbers fitted to other shapes
    """
    found = []
    for file in report.files:
        part = parts[file.file]
        found.append(_errors(file, "all", "", file.rows, part, shapes))
        for by in _TABLES[file.kind.name]:
            groups = grouped(file.rows, by).items()
            found += [_errors(file, by, name, rows, part, shapes) for name, rows in groups]
    return found


def write_record(records: Iterable[RecordedErrors], path: Path) -> None:
    """As a CSV, fractions to 5 digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = [item.name for item in fields(RecordedErrors)]
        writer.writerow(names)
        for one in records:
            writer.writerow([_text(getattr(one, name)) for name in names])


def read_record(path: Path) -> list[RecordedErrors]:
    """What :func:`write_record` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        return [RecordedErrors(**dict(_fields(given))) for given in csv.DictReader(file)]


def _errors(
    file: ValidatedFile,
    by: str,
    name: str,
    rows: Sequence[ValidatedRow],
    part: frozenset[str],
    shapes: Mapping[str, float | None],
) -> RecordedErrors:
    told = error_fields(rows, left_out=True)
    sure = error_fields([row for row in rows if _is_sure(row)])
    tried = error_fields([row for row in rows if row.id in part])
    worst = next((row for row in rows if row.id == told["worst"]), None)
    reasons = Counter(row.reason for row in rows if row.status == "refused")
    others = np.abs([error for row in rows if (error := shapes.get(row.id)) is not None])
    return RecordedErrors(
        file=file.file,
        by=by,
        name=name,
        **{key: told[key] for key in ("num_rows", "num_predicted", "mape", "median_ape", "p90_ape", "bias")},
        refused="; ".join(f"{count} {reason}" for reason, count in reasons.most_common()),
        worst=told["worst"] or "",
        worst_error=worst.error if worst is not None else None,
        sure_rows=sure["num_predicted"],
        sure_mape=sure["mape"],
        **{key: told[key] for key in ("num_sweeps", "rank_correlation", "regret")},
        left_out_mape=told["left_out"]["mape"],
        left_out_median=told["left_out"]["median_ape"],
        shape_mape=float(others.mean()) if len(others) else None,
        shape_median=float(np.median(others)) if len(others) else None,
        inside=told["inside_interval"],
        part_rows=tried["num_predicted"],
        part_mape=tried["mape"],
    )


def _is_sure(row: ValidatedRow) -> bool:
    return row.labels.get("how_obtained") != "memory" and row.labels.get("confidence") != "low"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _fields(given: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    read: Mapping[str, Callable[[str], Any]] = {"str": str, "int": int, "float | None": float}
    for item in fields(RecordedErrors):
        text = given[item.name]
        yield item.name, None if item.type == "float | None" and not text else read[str(item.type)](text)
