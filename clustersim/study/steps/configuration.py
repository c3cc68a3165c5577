"""Rows that say in which row of another file their configuration stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput
from clustersim.readers import step_rows
from clustersim.readers.step_rows import StepRow

__all__ = ["with_configurations"]

_ELSEWHERE = re.compile(r"configuration: (?:same key|id) with prefix (\S+) in (\S+\.csv)")
"""In notes: the row whose id is this prefix before the row's own model, in a file of the same folder."""

_OWN = ("line", "id", "group", "family", "source", "metric", "unit", "flops_convention", "how_obtained", "confidence")
"""Columns that are no part of a configuration, with ``value`` and ``notes``."""


def with_configurations(path: Path, rows: Sequence[StepRow]) -> tuple[StepRow, ...]:
    """Rows with the columns of the rows that they point to; as they are where there is no such file or row.

    The id may go on after the key where only one does.

    Parameters
    ----------
    path : Path
        the file of the rows
    rows : Sequence[StepRow]
    """
    return tuple(_filled(path.parent, row) for row in rows)


def _filled(folder: Path, row: StepRow) -> StepRow:
    found = _ELSEWHERE.search(row.notes)
    other = None if found is None else _row(folder / found[2], f"{found[1]}{row.model}")
    if other is None:
        return row
    names = {field.name for field in fields(StepRow)} - {*_OWN, "value", "notes"}
    given: dict[str, Any] = {name: getattr(other, name) for name in names if getattr(other, name) not in ("", None)}
    return replace(row, **given, notes=f"{row.notes}; {other.notes}")


def _row(file: Path, key: str) -> StepRow | None:
    """The row with this id, else the only one whose id begins so."""
    rows = [row for row in _rows(file) if row.id.startswith(key)]
    exact = [row for row in rows if row.id == key]
    if exact or len(rows) == 1:
        return (exact or rows)[0]
    return None


@cache
def _rows(file: Path) -> tuple[StepRow, ...]:
    """Those of a file; none of one that cannot be read."""
    try:
        return step_rows.read(file)[0] if file.is_file() else ()
    except BadInput:
        return ()
