"""One measurement beside its prediction, and what reports say of many of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ValidatedRow", "grouped"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidatedRow:
    """One measurement and what is predicted for it.

    Parameters
    ----------
    id : str
        of the row; ``line 7`` where it has none
    file : str
        it is from, as reports name it
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
    spread : float, optional
        standard deviation of the logarithm of the prediction that residuals of kernels and collectives leave; None
        where the prediction is no time or rate of a step
    interval : tuple[float, float], optional
        10th and 90th percentile of what is predicted, in the row's unit; None where none is told
    """

    id: str
    file: str = ""
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
    spread: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def status(self) -> str:
        """``predicted`` or ``refused``."""
        return "refused" if self.predicted is None else "predicted"

    @property
    def error(self) -> float | None:
        """predicted/measured - 1, as a fraction; None when refused."""
        return None if self.predicted is None or self.measured is None else self.predicted / self.measured - 1

    @property
    def inside(self) -> bool | None:
        """Whether the measurement is in the interval; None where there is none."""
        if self.interval is None or self.measured is None:
            return None
        return self.interval[0] <= self.measured <= self.interval[1]

    def fields(self) -> dict[str, Any]:
        """As JSON has it."""
        names = (
            "id",
            "file",
            "family",
            "source",
            "metric",
            "unit",
            "measured",
            "predicted",
            "error",
            "status",
            "reason",
        )
        more = ("detail", "in_domain", "coverage", "assumptions", "spread", "interval", "inside", "labels")
        return {name: getattr(self, name) for name in (*names, *more)}


def grouped(rows: Sequence[ValidatedRow], by: str) -> dict[str, list[ValidatedRow]]:
    """Rows by family, source or one of their labels, or by several with commas between them; in their order."""
    names = by.split(",")
    found: dict[str, list[ValidatedRow]] = {}
    for row in rows:
        told = [getattr(row, name) if name in ("family", "source") else row.labels.get(name, "") for name in names]
        found.setdefault(" ".join(told).strip(), []).append(row)
    return found
