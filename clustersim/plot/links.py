"""Which shared resources are used most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clustersim.plot.canvas import axes_or_new
from clustersim.plot.palette import colour_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["links"]

_LONGEST = 48
"""Characters of a label; of more names than fit, the first one stands for all."""


def links(table: pd.DataFrame, ax: Axes | None = None, top: int = 24) -> Axes:
    """Draw a table of :func:`clustersim.analysis.links`: bars to the mean utilisation, a tick at the peak.

    Parameters
    ----------
    table : DataFrame
    ax : Axes, optional
        where to draw; a new figure when None
    top : int
        so many of the most used; the title tells when there are more

    Returns
    -------
    Axes
        one bar for each resource

    Raises
    ------
    ValueError
        when the table is empty
    """
    if table.empty:
        raise ValueError("table: no resource was used")
    rows = table.nlargest(top, "mean_utilisation")
    ax = axes_or_new(ax)
    y = np.arange(len(rows))
    ax.barh(y, 100 * rows["mean_utilisation"], height=0.7, color=colour_of("compute"), label="mean")
    ax.plot(100 * rows["peak_utilisation"], y, "|", color="black", markersize=12, markeredgewidth=2, label="peak")
    names = [
        (names if len(names) <= _LONGEST else name) + (f"  ×{multiplicity:,}" if multiplicity > 1 else "")
        for name, names, multiplicity in zip(rows["name"], rows["stands_for"], rows["multiplicity"], strict=True)
    ]
    ax.set_yticks(y, names)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, max(100.0, float(100 * rows["peak_utilisation"].max())) * 1.02)
    ax.set_xlabel("utilisation [%]")
    if len(rows) < len(table):
        ax.set_title(f"{len(rows)} of {len(table)} resources", loc="right", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    return ax
