"""A calibrated card as the TOML file that holds it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.communication import Communication, Transport, numbers
from clustersim.hardware.residual import SIBLINGS, SMALL, spread
from clustersim.study.measured import Measured

__all__ = ["RESIDUAL", "card_text", "evidence", "residuals"]

RESIDUAL = "90th percentile of |ln(predicted / measured)| over the same rows, over 1.645"
"""Source of a card's residuals."""

_LEAST_ROWS = 6
"""Rows below which their residual says little."""

_SCALES = (("_latency", 1e6, "us"), ("_bandwidth", 1e-9, "GB/s"))


def card_text(
    card: Communication | Transport,
    *,
    description: str,
    evidence: str,
    residual: Mapping[str, float],
    determined: Collection[str],
    start: Communication | Transport,
) -> str:
    """The file's content.

    Parameters
    ----------
    description, evidence : str
        the line that ``clustersim list`` prints; what the numbers were measured by
    residual : Mapping[str, float]
        of :func:`residuals`
    determined : Collection[str]
        numbers that some measurement depends on; the others say that they are those of ``start``
    start : Communication or Transport
        where the search began
    """
    names = numbers(card)
    values = [f"{name} = {_value(name, getattr(card, name))}" for name in names]
    first = next((name for name in names if name in determined), "")
    sources = []
    for name in names:
        source = f"measured: with {first}" if name != first else f"measured: {evidence}"
        sources.append(
            f'{name} = "{source if name in determined else f"assumed: as {start.name}, no row depends on it"}"'
        )
    if isinstance(card, Transport) and not card.in_order:
        values.append("in_order = false")
        sources.append(f'in_order = "{start.sources.get("in_order", f"assumed: as {start.name}")}"')
    spreads = {name: residual.get(name, getattr(SIBLINGS, name)) for name in ("small", "large")}
    sources.append(f'residual = "measured: {RESIDUAL}"')
    sources += [f'"residual.{name}" = "assumed: as between kinds of node"' for name in spreads if name not in residual]
    table = ["[residual]", *(f"{name} = {value:.2g}" for name, value in spreads.items())]
    lines = [f'description = "{description}"', "", *values, "", *table, "", "[sources]", *sources]
    return "\n".join(lines) + "\n"


def evidence(rows: Sequence[Measured], errors: NDArray[np.float64]) -> str:
    """How many rows from where, and how far off they stay."""
    parts = []
    large = np.array([row.row.nbytes >= 2**20 for row in rows], dtype=bool)
    for of, where in ((large, "from 1 MiB"), (~large, "below")):
        if of.any():
            middle, far = np.quantile(np.abs(errors[of]), [0.5, 0.9])
            parts.append(f"{of.sum()} rows {where} (median error {middle:.1%}, 90th percentile {far:.0%})")
    origins = ", ".join(dict.fromkeys(row.row.source for row in rows))
    return f"least squares over {' and '.join(parts)}: {origins}".replace("\\", "/").replace('"', "'")


def residuals(rows: Sequence[Measured], errors: NDArray[np.float64]) -> dict[str, float]:
    """How far rows stay off, ``small`` and ``large``, each where there are enough of them."""
    small = np.array([row.row.nbytes < SMALL for row in rows], dtype=bool)
    return {name: spread(errors[of]) for name, of in (("small", small), ("large", ~small)) if of.sum() >= _LEAST_ROWS}


def _value(name: str, number: float) -> str:
    for ending, scale, unit in _SCALES:
        if name.endswith(ending):
            return f'"{number * scale:.4g} {unit}"'
    return f"{number:.4g}"
