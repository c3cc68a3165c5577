"""A calibrated card as the TOML file that holds it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.communication import Communication, Transport
from clustersim.study.measured import Measured

__all__ = ["card_text", "evidence"]

_SCALES = (("_latency", 1e6, "us"), ("_bandwidth", 1e-9, "GB/s"))


def card_text(
    card: Communication | Transport,
    *,
    description: str,
    evidence: str,
    determined: Collection[str],
    start: Communication | Transport,
) -> str:
    """The file's content.

    Parameters
    ----------
    description, evidence : str
        the line that ``clustersim list`` prints; what the numbers were measured by
    determined : Collection[str]
        numbers that some measurement depends on; the others say that they are those of ``start``
    start : Communication or Transport
        where the search began
    """
    names = [item.name for item in fields(card) if item.name not in ("name", "sources")]
    values = [f"{name} = {_value(name, getattr(card, name))}" for name in names]
    first = next((name for name in names if name in determined), "")
    sources = []
    for name in names:
        source = f"measured: with {first}" if name != first else f"measured: {evidence}"
        sources.append(
            f'{name} = "{source if name in determined else f"assumed: as {start.name}, no row depends on it"}"'
        )
    lines = [f'description = "{description}"', "", *values, "", "[sources]", *sources]
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


def _value(name: str, number: float) -> str:
    for ending, scale, unit in _SCALES:
        if name.endswith(ending):
            return f'"{number * scale:.4g} {unit}"'
    return f"{number:.4g}"
