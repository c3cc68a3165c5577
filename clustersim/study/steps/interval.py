"""Intervals of predicted steps, each from what steps of other sources were off by."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from clustersim.analysis.step_residual import StepResidual, load_step_residual
from clustersim.study.validated_row import ValidatedRow

__all__ = ["learn", "num_origins", "origin", "with_intervals"]

_TIMES = ("iteration_time", "forward_backward_time")

_RELEASE = re.compile(r"\b\d+(\.\d+)+(-v\d+)?\b")
"""Number of a release, as ``25.09`` or ``24.07-v1``."""

_LEAST_SOURCES = 3


def origin(row: ValidatedRow) -> str:
    """The source without the number of its release: releases of one table repeat each other."""
    return " ".join(_RELEASE.sub("", row.source).split())


def learn(rows: Sequence[ValidatedRow], name: str = "steps") -> StepResidual | None:
    """What rows of steps were off by, beside kernels and collectives.

    Parameters
    ----------
    rows : Sequence[ValidatedRow]
        of these count predicted times and rates that were read, with high or medium confidence
    name : str

    Returns
    -------
    StepResidual or None
        None with rows of fewer than three sources
    """
    sure = [row for row in rows if _is_sure(row)]
    if len({origin(row) for row in sure}) < _LEAST_SOURCES:
        return None
    return StepResidual.of(
        name, [_log(row) for row in sure], [row.spread or 0.0 for row in sure], [origin(row) for row in sure]
    )


def num_origins(rows: Sequence[ValidatedRow]) -> tuple[int, int]:
    """Rows that :func:`learn` learns from, and sources of these."""
    sure = [row for row in rows if _is_sure(row)]
    return len(sure), len({origin(row) for row in sure})


def with_intervals(rows: Sequence[ValidatedRow]) -> tuple[ValidatedRow, ...]:
    """Rows with their intervals, each from the rows of all other sources; from the shipped card where these are few."""
    shipped = load_step_residual()
    others = {name: learn([row for row in rows if origin(row) != name]) or shipped for name in map(origin, rows)}
    return tuple(_with_interval(row, others[origin(row)]) for row in rows)


def _with_interval(row: ValidatedRow, residual: StepResidual) -> ValidatedRow:
    if row.spread is None or row.predicted is None:
        return row
    low, high = residual.interval(1.0, row.spread)
    factors = (low, high) if row.metric in _TIMES else (1 / high, 1 / low)
    return replace(row, interval=(row.predicted * factors[0], row.predicted * factors[1]))


def _is_sure(row: ValidatedRow) -> bool:
    told = row.spread is not None and bool(row.predicted) and bool(row.measured)
    return told and row.labels.get("how_obtained") != "memory" and row.labels.get("confidence") != "low"


def _log(row: ValidatedRow) -> float:
    """ln(measured / predicted) of the time."""
    ratio = math.log((row.measured or 1.0) / (row.predicted or 1.0))
    return ratio if row.metric in _TIMES else -ratio
