"""One measurement beside its prediction, and what reports say of many of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Figures", "ValidatedRow", "answer", "grouped"]


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


Figures = Callable[[Sequence[ValidatedRow]], dict[str, Any]]
"""Rows -> their errors as JSON has them."""


def grouped(rows: Sequence[ValidatedRow], by: str) -> dict[str, list[ValidatedRow]]:
    """Rows by family, source or one of their labels, in their order."""
    found: dict[str, list[ValidatedRow]] = {}
    for row in rows:
        name = getattr(row, by) if by in ("family", "source") else row.labels.get(by, "")
        found.setdefault(name, []).append(row)
    return found


def answer(
    file: str,
    rows: Sequence[ValidatedRow],
    notes: Sequence[str],
    *,
    figures: Figures,
    totals: Mapping[str, Sequence[ValidatedRow]],
    fields: Callable[[ValidatedRow], dict[str, Any]],
    by: tuple[str, Mapping[str, Sequence[ValidatedRow]]] | None = None,
) -> dict[str, Any]:
    """The fields of ``validate --json``.

    Parameters
    ----------
    file : str
    rows : Sequence[ValidatedRow]
        all of the file
    notes : Sequence[str]
        what of the file was not read
    figures : Figures
    totals : Mapping[str, Sequence[ValidatedRow]]
        what is summed up, by its name
    fields : Callable[[ValidatedRow], dict[str, Any]]
        a row as JSON has it
    by : tuple[str, Mapping[str, Sequence[ValidatedRow]]], optional
        a label to tell errors by, beside the families, and the rows by it
    """
    num_predicted = sum(row.status == "predicted" for row in rows)
    found = {
        "file": file,
        "num_rows": len(rows),
        "num_predicted": num_predicted,
        "num_refused": len(rows) - num_predicted,
        "families": {name: figures(members) for name, members in grouped(rows, "family").items()},
        "totals": {name: figures(members) for name, members in totals.items()},
        "rows": [fields(row) for row in rows],
        "warnings": list(notes),
    }
    if by is not None:
        found["by"] = {by[0]: {name: figures(members) for name, members in by[1].items()}}
    return found
