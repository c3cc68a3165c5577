"""What simulations of whole steps miss beside kernels and collectives: host, stragglers, work that is not modelled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clustersim.library.build import build
from clustersim.library.card import read_card

__all__ = ["WITHIN", "StepResidual", "load_step_residual", "share_of"]

WITHIN = 1.2816
"""Standard deviations from the middle of a normal distribution to its 10th and 90th percentiles."""

_SHARE = 0.8
"""Of measurements that an interval from the 10th to the 90th percentile is to hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResidual:
    """How far measured steps are from simulated ones, beside what residuals of kernels and collectives explain.

    Parameters
    ----------
    name : str
        card name, ``steps``
    centre : float
        of ln(measured / predicted time); it moves intervals, never predictions
    spread : float
        standard deviation of that logarithm
    sources : Mapping[str, str]
        where both are from

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    name: str
    centre: float
    spread: float
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not -1 < self.centre < 1:
            raise ValueError(f"centre: {self.centre} must be between -1 and 1")
        if not 0 <= self.spread < math.inf:
            raise ValueError(f"spread: {self.spread} must be zero or positive, and finite")

    def interval(self, seconds: float, spread: float) -> tuple[float, float]:
        """From the 10th to the 90th percentile of a time that is predicted as ``seconds`` [s].

        ln(time / seconds) is normal about ``centre``, its variance the sum of both. The interval is widened to hold the
        prediction itself where the centre is far off.

        Parameters
        ----------
        seconds : float
            predicted [s]
        spread : float
            standard deviation of the logarithm of time that kernels and collectives leave
        """
        reach = WITHIN * math.hypot(spread, self.spread)
        low, high = min(self.centre - reach, 0.0), max(self.centre + reach, 0.0)
        return seconds * math.exp(low), seconds * math.exp(high)

    @classmethod
    def of(cls, name: str, logs: Sequence[float], spreads: Sequence[float], sources: Sequence[str]) -> StepResidual:
        """Learn from measured steps.

        Every source counts the same, whatever its number of rows: its rows share what they miss. The centre is the
        median over sources of their medians if that brings sources that are left out nearer to zero than zero itself
        does, else zero. The spread is the least under which a part 0.8 (M + 1)/M of the rows of M sources is in their
        intervals, at most all: as many as a row of yet another source needs to be inside in 80 % of cases.

        Parameters
        ----------
        name : str
        logs : Sequence[float], shape (num_rows,)
            ln(measured / predicted time)
        spreads : Sequence[float], shape (num_rows,)
            what kernels and collectives leave of each
        sources : Sequence[str], shape (num_rows,)
            who published it

        References
        ----------
        Dunn, Wasserman, Ramdas, Distribution-free prediction sets for two-layer hierarchical models, JASA 2023: each
        group weighs 1/(M + 1), what is left stands for the new one.
        """
        of = np.asarray(logs, dtype=np.float64)
        explained = np.asarray(spreads, dtype=np.float64)
        _, which, counts = np.unique(np.asarray(sources), return_inverse=True, return_counts=True)
        weight = 1.0 / counts[which]
        centre = _centre(np.array([np.median(of[which == k]) for k in range(len(counts))]))
        # a row is inside from this spread on
        needed = np.sqrt(np.maximum((np.abs(of - centre) / WITHIN) ** 2 - explained**2, 0.0))
        order = np.argsort(needed)
        inside = np.cumsum(weight[order]) >= share_of(len(counts)) * weight.sum() * (1 - 1e-12)
        return cls(name=name, centre=centre, spread=float(needed[order][int(np.argmax(inside))]))


def share_of(num_sources: int) -> float:
    """Part of the rows of so many sources that must be inside for 80 % of yet another source to be."""
    return min(1.0, _SHARE * (num_sources + 1) / num_sources)


def _centre(medians: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """That of the sources, or zero where it does not help a source that is left out."""
    if len(medians) < 3:
        return 0.0
    others = np.array([np.median(np.delete(medians, k)) for k in range(len(medians))])
    helps = np.abs(medians - others).mean() < np.abs(medians).mean()
    return float(np.median(medians)) if helps else 0.0


def load_step_residual(name: str = "steps") -> StepResidual:
    """Load a card of :class:`StepResidual` by its name, or by its path.

    Raises
    ------
    BadInput
        when there is no such card, or with every fault of it
    """
    return build(read_card("residual", name), StepResidual)
