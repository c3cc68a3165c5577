"""Figures of a report: predictions against measurements, a file each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clustersim.study.figure import save
from clustersim.study.validation import Validation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["accuracy_figures"]

_BY = {"collectives": "collective", "kernels": "device", "steps": "family"}
"""What the points of a kind of rows are told apart by."""


def accuracy_figures(report: Validation, folder: Path) -> list[Path]:
    """Write ``accuracy_FILE.png`` for each file of a report with a prediction; of collectives also
    ``accuracy_FILE_by_size.png``, with the error at each payload.

    Returns
    -------
    list[Path]
        of the figures
    """
    table = report.table()
    written = []
    for file in report.files:
        rows = table[table["file"] == file.file]
        rows = rows.assign(family=rows["family"].str.removeprefix(f"{Path(file.file).stem}:"))
        if not (rows["status"] == "predicted").any():
            continue
        stem = Path(file.file).stem
        written.append(_scatter(rows, _BY[file.kind.name], folder / f"accuracy_{stem}.png"))
        if file.kind.name == "collectives":
            written.append(_by_size(rows, folder / f"accuracy_{stem}_by_size.png"))
    return written


def _scatter(rows: pd.DataFrame, by: str, path: Path) -> Path:
    from clustersim import plot

    return save(lambda: plot.measured(rows, by=by)[0], path)


def _by_size(rows: pd.DataFrame, path: Path) -> Path:
    from clustersim import plot

    return save(lambda: plot.accuracy(rows)[0], path)
