"""A report of predictions beside measurements: rows of one file or several, and their errors by what they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clustersim.study.row_errors import error_fields
from clustersim.study.row_kind import RowKind
from clustersim.study.validated_row import ValidatedRow, grouped

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ValidatedFile", "Validation"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidatedFile:
    """Rows of one file.

    Parameters
    ----------
    file : str
        as reports name it
    kind : RowKind
        what its rows measure
    rows : tuple[ValidatedRow, ...]
        in the file's order
    notes : tuple[str, ...]
        what of the file was not read
    """

    file: str
    kind: RowKind
    rows: tuple[ValidatedRow, ...]
    notes: tuple[str, ...] = ()

    def groups(self, by: str) -> dict[str, list[ValidatedRow]]:
        """Rows by family, source or one of their labels, several with commas: in the file's order; sizes from the
        smallest on, several labels by name."""
        found = grouped(self.rows, by)
        if "," in by:
            return dict(sorted(found.items()))
        if by != "size":
            return found
        return dict(sorted(found.items(), key=lambda item: min(row.nbytes or float("inf") for row in item[1])))


@dataclass(frozen=True, kw_only=True, slots=True)
class Validation:
    """Files and their rows.

    Parameters
    ----------
    files : tuple[ValidatedFile, ...]
        one or more
    left_out : str, optional
        the column whose values were left out of the calibration one at a time
    """

    files: tuple[ValidatedFile, ...]
    left_out: str | None = None

    @property
    def rows(self) -> tuple[ValidatedRow, ...]:
        """Of all files."""
        return tuple(row for file in self.files for row in file.rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """Of all files, with their names where there are several."""
        alone = len(self.files) == 1
        return tuple(note if alone else f"{file.file}: {note}" for file in self.files for note in file.notes)

    def groups(self, by: str) -> dict[str, list[ValidatedRow]]:
        """Rows by what they share, of the files whose rows are told by it."""
        found: dict[str, list[ValidatedRow]] = {}
        for file in self.files:
            if set(by.split(",")) <= set(file.kind.labels):
                for name, rows in file.groups(by).items():
                    found.setdefault(name, []).extend(rows)
        return found

    def totals(self) -> dict[str, Sequence[ValidatedRow]]:
        """What is summed up: that of the file; of several, all rows of each, and their own with the kind's name."""
        if len(self.files) == 1:
            return dict(self.files[0].kind.totals(self.rows))
        found: dict[str, Sequence[ValidatedRow]] = {file.file: file.rows for file in self.files}
        for kind in dict.fromkeys(file.kind for file in self.files):
            rows = [row for file in self.files if file.kind is kind for row in file.rows]
            found |= {f"{kind.name}: {name}": of for name, of in kind.totals(rows).items()}
        return found

    def answer(self, by: str | None = None) -> dict[str, Any]:
        """The fields of ``validate --json``.

        Parameters
        ----------
        by : str, optional
            a label to tell errors by, beside the families, or several with commas between them
        """
        rows = self.rows
        num_predicted = sum(row.status == "predicted" for row in rows)
        found: dict[str, Any] = {
            "files": [file.file for file in self.files],
            "num_rows": len(rows),
            "num_predicted": num_predicted,
            "num_refused": len(rows) - num_predicted,
            "families": {name: self.errors(members) for name, members in grouped(rows, "family").items()},
            "totals": {name: self.errors(members) for name, members in self.totals().items()},
            "rows": [self._row(row) for row in rows],
            "warnings": list(self.notes),
        }
        if by is not None:
            found["by"] = {by: {name: self.errors(members) for name, members in self.groups(by).items()}}
        return found

    def errors(self, rows: Sequence[ValidatedRow]) -> dict[str, Any]:
        """Errors of some of the rows, under left-out calibrations too where there are any."""
        return error_fields(rows, left_out=self.left_out is not None)

    def table(self) -> pd.DataFrame:
        """One row a measurement: its fields, labels as columns of their own."""
        import pandas as pd

        return pd.DataFrame(list(self._records()))

    def _row(self, row: ValidatedRow) -> dict[str, Any]:
        return row.fields() if self.left_out is None else row.fields() | {"left_out_error": row.left_out_error}

    def _records(self) -> Iterator[dict[str, Any]]:
        for file in self.files:
            for row in file.rows:
                found = {name: value for name, value in self._row(row).items() if name not in ("labels", "coverage")}
                found |= {"nbytes": row.nbytes, "line": row.line}
                found["assumptions"] = "; ".join(row.assumptions)
                yield found | {name: text for name, text in row.labels.items() if name not in found}
