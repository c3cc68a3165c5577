"""What a sweep of layouts is for: whether predictions order it as measurements do, and what a wrong choice costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranking"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """Of some sweeps, means over them.

    Parameters
    ----------
    num_sweeps : int
        with two rows of different work or more
    rank_correlation : float, optional
        Spearman's, between predicted and measured; None without a sweep whose values differ
    regret : float, optional
        how much worse than the best measured row the one is that is predicted best, as a fraction
    """

    num_sweeps: int
    rank_correlation: float | None
    regret: float | None

    @classmethod
    def of(cls, sweeps: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Ranking:
        """Rank sweeps of (predicted, measured) in which less is better: seconds of equal work."""
        found, regrets = [], []
        for predicted, measured in sweeps:
            guess, truth = np.asarray(predicted, float), np.asarray(measured, float)
            regrets.append(float(truth[int(guess.argmin())] / truth.min() - 1))
            if len(truth) > 2 and np.ptp(truth) and np.ptp(guess):
                found.append(float(np.corrcoef(_ranks(guess), _ranks(truth))[0, 1]))
        return cls(
            num_sweeps=len(regrets),
            rank_correlation=float(np.mean(found)) if found else None,
            regret=float(np.mean(regrets)) if regrets else None,
        )


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks, equal values sharing the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]
