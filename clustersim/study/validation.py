"""A report of predictions beside measurements: rows, and their errors by whatever the rows have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from clustersim.analysis.accuracy import Accuracy
from clustersim.study.validated_row import ValidatedRow, answer, grouped

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LARGE", "NOT_KNOWN", "Validation"]

LARGE = 2**20
"""Payload from which a row counts among the large ones of the totals [B]."""

NOT_KNOWN = "not known"
"""Label ``network`` of rows whose source does not say what they ran over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Validation:
    """Rows of one file.

    Parameters
    ----------
    file : str
    rows : tuple[ValidatedRow, ...]
        all of the file, in its order
    notes : tuple[str, ...]
        what of the file was not read
    left_out : str, optional
        the column whose groups were left out of the calibration one at a time
    """

    file: str
    rows: tuple[ValidatedRow, ...]
    notes: tuple[str, ...] = ()
    left_out: str | None = None

    def groups(self, by: str) -> dict[str, list[ValidatedRow]]:
        """Rows by family or by one of their labels: in the file's order, sizes from the smallest on."""
        found = grouped(self.rows, by)
        if by != "size":
            return found
        return dict(sorted(found.items(), key=lambda item: min(row.nbytes or float("inf") for row in item[1])))

    def totals(self) -> dict[str, list[ValidatedRow]]:
        """All rows; large and small ones, those of low confidence apart; the same without unknown networks."""
        found = {"all rows": list(self.rows)}
        for networks, confidence, large in product(("", ", known networks"), ("", ", low confidence"), (True, False)):
            found[f"{'1 MiB and above' if large else 'below 1 MiB'}{confidence}{networks}"] = [
                row
                for row in self.rows
                if row.nbytes is not None
                and (row.nbytes >= LARGE) == large
                and (row.labels.get("confidence") == "low") == bool(confidence)
                and not (networks and row.labels.get("network") == NOT_KNOWN)
            ]
        return found

    def table(self) -> pd.DataFrame:
        """One row a measurement: its fields, labels as columns of their own."""
        import pandas as pd

        return pd.DataFrame(list(self._records()))

    def answer(self, by: str | None = None) -> dict[str, Any]:
        """The fields of ``validate --json``.

        Parameters
        ----------
        by : str, optional
            a label to tell errors by, beside the families
        """
        return answer(
            self.file,
            self.rows,
            self.notes,
            figures=self._figures,
            totals=self.totals(),
            fields=self._row,
            by=None if by is None else (by, self.groups(by)),
        )

    def _figures(self, rows: Sequence[ValidatedRow]) -> dict[str, Any]:
        figures = Accuracy.of([row.error for row in rows]).fields()
        if self.left_out is not None:
            left_out = Accuracy.of([row.left_out_error for row in rows]).fields()
            figures["left_out"] = {name: left_out[name] for name in ("mape", "median_ape", "p90_ape", "bias")}
        return figures

    def _row(self, row: ValidatedRow) -> dict[str, Any]:
        found = {"file": self.file, **row.fields()}
        return found if self.left_out is None else found | {"left_out_error": row.left_out_error}

    def _records(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            found = {name: value for name, value in self._row(row).items() if name not in ("labels", "coverage")}
            told = {"nbytes": row.nbytes, "line": row.line, "assumptions": "; ".join(row.assumptions)}
            yield found | {name: text for name, text in row.labels.items() if name not in found} | told
