"""How to split optimizer state over kinds of drive: from their rates in closed form, and by search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clustersim.analysis.summary import summary
from clustersim.library.job import JobSetup
from clustersim.study.point import prepare, run_point
from clustersim.topology.drive_rates import DriveRates

__all__ = ["Split", "balanced_split", "search_split", "split_by_lower_rate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """One point of a search.

    Parameters
    ----------
    shares : tuple[int, int]
        in which proportion subgroups are on the two tiers
    step_time_s : float
        [s]
    fits : bool
    """

    shares: tuple[int, int]
    step_time_s: float
    fits: bool


def split_by_lower_rate(rates: Sequence[DriveRates], count: int) -> tuple[int, ...]:
    """Subgroups on each tier as MLP-Offload's model of I/O has it: n_i = N·B_i/ΣB with B_i = min(read_i, write_i).

    Parameters
    ----------
    rates : Sequence[DriveRates]
        of each tier
    count : int
        subgroups

    References
    ----------
    Maurya et al., MLP-Offload, 2025, section on the I/O performance model.
    """
    return _proportional([min(one.read, one.write) for one in rates], count)


def balanced_split(rates: Sequence[DriveRates], count: int, *, cache: int = 0) -> tuple[int, ...]:
    """Subgroups on each tier at which all tiers are busy equally long.

    A subgroup that is neither kept nor comes back from the cache takes a tier's time to read and write it, so

        (n_1 - C)·(1/read_1 + 1/write_1) = (n_2 - C)·(1/read_2 + 1/write_2)

    with the larger of the two terms where a tier reads and writes at once.

    Parameters
    ----------
    rates : Sequence[DriveRates]
        of each tier
    count : int
        N, subgroups
    cache : int
        C, subgroups of each tier that stay on the host
    """
    flowing = max(0, count - cache * len(rates))
    parts = _proportional([1 / one.per_byte for one in rates], flowing)
    kept = _proportional([1.0] * len(rates), count - flowing)
    return tuple(part + more for part, more in zip(parts, kept, strict=True))


def _proportional(weights: Sequence[float], count: int) -> tuple[int, ...]:
    """Whole numbers in proportion, that add up to ``count``."""
    ends = np.rint(np.cumsum(weights) / sum(weights) * count).astype(int)
    return tuple(np.diff(ends, prepend=0).tolist())


def search_split(setup: JobSetup, shares: Iterable[tuple[int, int]]) -> list[Split]:
    """Simulate a job with other shares of its two tiers, the shortest step first, those that do not fit last.

    Parameters
    ----------
    setup : JobSetup
        with a policy that has ``tiers`` and ``shares``; its ratio is left out
    shares : Iterable[tuple[int, int]]

    Raises
    ------
    BadInput
        as :func:`clustersim.study.point.prepare` does
    """
    found = []
    free = replace(setup, values={key: value for key, value in setup.values.items() if key != "plan.offload.ratio"})
    for pair in shares:
        answer = summary(run_point(prepare(free.with_values({"plan.offload.shares": list(pair)}))))
        found.append(Split(shares=pair, step_time_s=answer["step_time_s"], fits=bool(answer["fits"])))
    return sorted(found, key=lambda split: (not split.fits, split.step_time_s))
