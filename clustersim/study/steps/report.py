"""A report of predicted steps beside measured ones: rows, their errors by what they have in common, their sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clustersim.analysis.accuracy import Accuracy
from clustersim.study.steps.sweeps import Ranking
from clustersim.study.validated_row import ValidatedRow, answer, grouped

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LABELS", "StepValidation"]

LABELS = (
    "source",
    "family",
    "profile",
    "topology",
    "hardware",
    "model",
    "precision",
    "group",
    "confidence",
    "how_obtained",
    "year",
    "gpus",
    "tp",
    "pp",
    "cp",
    "ep",
    "recompute",
    "fits",
    "network",
)
"""What errors can be told by: columns of the file, and what the row was mapped to."""

_LESS_IS_BETTER = ("iteration_time", "forward_backward_time")


@dataclass(frozen=True, kw_only=True, slots=True)
class StepValidation:
    """Rows of one file.

    Parameters
    ----------
    file : str
    rows : tuple[ValidatedRow, ...]
        in the file's order
    notes : tuple[str, ...]
        what of the file was not read
    """

    file: str
    rows: tuple[ValidatedRow, ...]
    notes: tuple[str, ...] = ()

    def groups(self, by: str) -> dict[str, list[ValidatedRow]]:
        """Rows by family, source or one of their labels, in the file's order."""
        return grouped(self.rows, by)

    def totals(self) -> dict[str, list[ValidatedRow]]:
        """All rows; those that were read and are not of low confidence; of these, those in the calibrated domain."""
        sure = [r for r in self.rows if r.labels.get("how_obtained") != "memory" and r.labels["confidence"] != "low"]
        return {
            "all rows": list(self.rows),
            "read, of high or medium confidence": sure,
            "of these in the calibrated domain": [row for row in sure if row.in_domain or row.status == "refused"],
        }

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
            figures=figures,
            totals=self.totals(),
            fields=self._row,
            by=None if by is None else (by, self.groups(by)),
        )

    def table(self) -> pd.DataFrame:
        """One row a measurement: its fields, labels as columns of their own."""
        import pandas as pd

        return pd.DataFrame(list(self._records()))

    def _row(self, row: ValidatedRow) -> dict[str, Any]:
        return {"file": self.file, **row.fields()}

    def _records(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            found = {key: value for key, value in self._row(row).items() if key not in ("labels", "coverage")}
            found |= {"line": row.line, "assumptions": "; ".join(row.assumptions)}
            yield found | {name: text for name, text in row.labels.items() if name not in found}


def figures(rows: Sequence[ValidatedRow]) -> dict[str, Any]:
    """Accuracy of rows, the row that is furthest off, and how their sweeps are ordered."""
    accuracy = Accuracy.of([row.error for row in rows])
    worst = None if accuracy.worst is None else rows[accuracy.worst].id
    order = ranking(rows)
    return accuracy.fields() | {
        "worst": worst,
        "num_sweeps": order.num_sweeps,
        "rank_correlation": order.rank_correlation,
        "regret": order.regret,
    }


def ranking(rows: Sequence[ValidatedRow]) -> Ranking:
    """Order of the sweeps among rows: of one group, on as many GPUs, in one metric, of one model, batch and format.

    Rates are turned round, so that less is better in all.
    """
    sweeps: dict[tuple[str, ...], list[ValidatedRow]] = {}
    for row in rows:
        if row.predicted is not None and row.measured is not None and row.labels.get("group"):
            names = ("group", "gpus", "model", "global_batch", "seq_len", "precision", "source")
            key = (row.metric, row.unit, *(row.labels.get(name, "") for name in names))
            sweeps.setdefault(key, []).append(row)
    found = []
    for (metric, *_), members in sweeps.items():
        if len({row.labels.get("layout", "") for row in members}) < 2:
            continue
        sign = 1 if metric in _LESS_IS_BETTER else -1
        found.append(
            ([(row.predicted or 1) ** sign for row in members], [(row.measured or 1) ** sign for row in members])
        )
    return Ranking.of(found)
