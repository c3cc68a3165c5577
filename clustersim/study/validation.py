"""A report of predictions beside measurements: rows, and their errors by whatever the rows have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from clustersim.analysis.accuracy import Accuracy

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LARGE", "NOT_KNOWN", "ValidatedRow", "Validation"]

LARGE = 2**20
"""Payload from which a row counts among the large ones of the totals [B]."""

NOT_KNOWN = "not known"
"""Label ``network`` of rows whose source does not say what they ran over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidatedRow:
    """One measurement and what is predicted for it.

    Parameters
    ----------
    id : str
        of the row; ``line 7`` where it has none
    line : int
        of the file
    family, source : str
        what its error is told with; where it was published
    metric, unit : str
        what was measured
    measured : float, optional
        None where a refused row has no number
    predicted : float, optional
        None where it was refused
    reason : str
        why it was refused, one of :data:`clustersim.study.prediction.REASONS`; empty where it was not
    detail : str
        the reason with the row's own values
    in_domain : bool
        whether the prediction rests on measurements of such hardware and on a network that is known
    coverage : Mapping[str, float]
        fractions of the prediction that are measured, interpolated, modelled and assumed, sum 1; empty when refused
    assumptions : tuple[str, ...]
        what the source leaves open or the model takes in its place, as ``kind: text``
    nbytes : int, optional
        payload [B]
    labels : Mapping[str, str]
        what errors can be told by
    left_out_error : float, optional
        under numbers that were calibrated without the row's group
    """

    id: str
    line: int
    family: str
    source: str
    metric: str
    unit: str
    measured: float | None
    predicted: float | None = None
    reason: str = ""
    detail: str = ""
    in_domain: bool = False
    coverage: Mapping[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    nbytes: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    left_out_error: float | None = None

    @property
    def status(self) -> str:
        """``predicted`` or ``refused``."""
        return "refused" if self.predicted is None else "predicted"

    @property
    def error(self) -> float | None:
        """predicted/measured - 1, as a fraction; None when refused."""
        return None if self.predicted is None or self.measured is None else self.predicted / self.measured - 1

    def fields(self) -> dict[str, Any]:
        """As JSON has it, without the file."""
        names = ("id", "family", "source", "metric", "unit", "measured", "predicted", "error", "status", "reason")
        more = ("detail", "in_domain", "coverage", "assumptions", "labels")
        return {name: getattr(self, name) for name in (*names, *more)}


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
        found: dict[str, list[ValidatedRow]] = {}
        for row in self.rows:
            name = getattr(row, by) if by in ("family", "source") else row.labels.get(by, "")
            found.setdefault(name, []).append(row)
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
        num_predicted = sum(row.status == "predicted" for row in self.rows)
        answer = {
            "file": self.file,
            "num_rows": len(self.rows),
            "num_predicted": num_predicted,
            "num_refused": len(self.rows) - num_predicted,
            "families": {name: self._figures(rows) for name, rows in self.groups("family").items()},
            "totals": {name: self._figures(rows) for name, rows in self.totals().items()},
            "rows": [self._row(row) for row in self.rows],
            "warnings": list(self.notes),
        }
        if by is not None:
            answer["by"] = {by: {name: self._figures(rows) for name, rows in self.groups(by).items()}}
        return answer

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
