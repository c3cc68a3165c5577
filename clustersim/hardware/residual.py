"""How far measured collectives are from the numbers of a communication library's card."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIBLINGS", "SMALL", "Residual", "spread"]

SMALL = 2**20
"""Payload below which latency rules, and programs and versions of NCCL differ most [B]."""

_NORMAL = 1.645
"""90th percentile of the size of a normal variable, in standard deviations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Residual:
    """Standard deviations of the logarithm of time.

    Parameters
    ----------
    small, large : float
        of collectives below :data:`SMALL` and of those from there on

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    small: float
    large: float

    def __post_init__(self) -> None:
        for name in ("small", "large"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: {getattr(self, name)} must be zero or positive, and finite")

    def of(self, nbytes: float) -> float:
        """That of a payload [B]."""
        return self.small if nbytes < SMALL else self.large


SIBLINGS = Residual(small=0.38, large=0.19)
"""How far off collectives of one kind of node are when predicted by the numbers of another: the median over pairs of
kinds that were measured, in published rows on one node. Networks that nobody measured are taken to be as far off."""


def spread(errors: NDArray[np.float64]) -> float:
    r"""Standard deviation of a normal variable with the 90th percentile of \|ln(1 + errors)\|.

    Parameters
    ----------
    errors : NDArray[float64], shape (num_rows,)
        predicted over measured time, less 1
    """
    return float(np.quantile(np.abs(np.log1p(errors)), 0.9)) / _NORMAL
