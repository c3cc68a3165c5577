"""Predictions against measurements: points on the diagonal are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from clustersim.plot.palette import COLOURS, SERIES
from clustersim.plot.panels import grid, legend_below

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["measured"]

_MARKERS = "osD^vP<>X*"
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_DPI = 75
"""Thousands of points in many panels are still a small file."""
_NARROW = 200
"""Span of the axes below which more than powers of ten are labelled."""


def measured(table: pd.DataFrame, axes: Sequence[Axes] | None = None, by: str = "family") -> list[Axes]:
    """Draw predicted against measured values on logarithmic axes, a panel for each unit.

    Parameters
    ----------
    table : DataFrame
        of :meth:`clustersim.study.validation.Validation.table`; rows that were refused are left out
    axes : sequence of Axes, optional
        where to draw, at least one a panel; a new figure when None
    by : str
        column whose values have a colour and a marker each

    Returns
    -------
    list[Axes]
        one a panel: the diagonal, a band of ±10 % around it, filled markers for rows in the domain of the calibration,
        hollow ones for others

    Raises
    ------
    ValueError
        when no row was predicted, or ``axes`` are too few
    """
    rows = table[table["status"] == "predicted"]
    if rows.empty:
        raise ValueError("table: no row was predicted")
    units = rows["unit"].map(_told)
    panels = grid(units.nunique(), dpi=_DPI) if axes is None else list(axes)[: units.nunique()]
    if len(panels) < units.nunique():
        raise ValueError(f"axes: {len(panels)} are too few for {units.nunique()} panels")
    names = list(dict.fromkeys(rows[by]))
    for ax, unit in zip(panels, dict.fromkeys(units), strict=True):
        mine = rows[units == unit]
        scale = mine["unit"].map(_SECONDS).fillna(1.0)
        truth, guess = mine["measured"] * scale, mine["predicted"] * scale
        _frame(ax, unit, min(truth.min(), guess.min()) / 1.3, max(truth.max(), guess.max()) * 1.3)
        for k, name in enumerate(names):
            colour, label = COLOURS.get(str(name)) or SERIES[k % len(SERIES)], str(name)
            for inside in (True, False):
                some = mine.index[(mine[by] == name) & (mine["in_domain"] == inside)]
                if len(some):
                    ax.scatter(
                        truth[some],
                        guess[some],
                        s=16,
                        marker=_MARKERS[k % len(_MARKERS)],
                        facecolors=colour if inside else "none",
                        edgecolors=colour,
                        linewidths=0.8,
                        label=label,
                    )
                    label = "_nolegend_"
        count = f"{len(mine)} row{'s' * (len(mine) != 1)}"
        ax.set_title(f"{unit}: {count}", loc="left", fontsize="medium")
    if axes is None:
        legend_below(panels, title="hollow: out of the calibrated domain")
    return panels


def _told(unit: str) -> str:
    """A unit without what its source says beside it: times in seconds, parts in percent."""
    if unit in _SECONDS:
        return "s"
    if unit.startswith("percent"):
        return "%"
    return unit.partition(" (")[0].replace("/GCD", "/GPU")


def _frame(ax: Axes, unit: str, low: float, high: float) -> None:
    """Logarithmic axes from ``low`` to ``high``, the diagonal and the band around it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ends = np.array([low, high])
    ax.fill_between(ends, 0.9 * ends, 1.1 * ends, color="#EBEBEB", zorder=0, linewidth=0)
    ax.plot(ends, ends, color="black", linewidth=0.8, zorder=1)
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    ax.set(xlabel=f"measured [{unit}]", ylabel=f"predicted [{unit}]")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
        if high < _NARROW * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.spines[["top", "right"]].set_visible(False)
