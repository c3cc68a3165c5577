"""How far predictions are from measurements: the figures of a set of errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Accuracy"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Accuracy:
    """Of some rows; figures are over those that were predicted, None when none was.

    An error e is predicted/measured - 1, as a fraction.

    Parameters
    ----------
    num_rows, num_predicted : int
    mape, median_ape, p90_ape : float, optional
        mean, median and 90th percentile of \\|e\\|
    bias : float, optional
        mean of e: negative where predictions are too fast
    worst : int, optional
        position of the row with the largest \\|e\\|, the first of equal ones
    """

    num_rows: int
    num_predicted: int
    mape: float | None
    median_ape: float | None
    p90_ape: float | None
    bias: float | None
    worst: int | None

    @classmethod
    def of(cls, errors: Sequence[float | None]) -> Accuracy:
        """Figures of the errors of all rows, None for a row that was refused."""
        where = [i for i, error in enumerate(errors) if error is not None]
        found = np.array([errors[i] for i in where], dtype=np.float64)
        if not where:
            return cls(
                num_rows=len(errors),
                num_predicted=0,
                mape=None,
                median_ape=None,
                p90_ape=None,
                bias=None,
                worst=None,
            )
        absolute = np.abs(found)
        return cls(
            num_rows=len(errors),
            num_predicted=len(where),
            mape=float(absolute.mean()),
            median_ape=float(np.median(absolute)),
            p90_ape=float(np.percentile(absolute, 90)),
            bias=float(found.mean()),
            worst=where[int(absolute.argmax())],
        )

    @property
    def num_refused(self) -> int:
        """Rows without a prediction."""
        return self.num_rows - self.num_predicted

    def fields(self) -> dict[str, Any]:
        """As JSON has it, without the worst row."""
        return {
            "num_rows": self.num_rows,
            "num_predicted": self.num_predicted,
            "num_refused": self.num_refused,
            "mape": self.mape,
            "median_ape": self.median_ape,
            "p90_ape": self.p90_ape,
            "bias": self.bias,
        }
