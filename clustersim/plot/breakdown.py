"""Where the time goes: a stacked bar for each rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clustersim.plot.canvas import axes_or_new, thinned, time_unit
from clustersim.plot.palette import colour_of, ink_on

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["breakdown"]

_KEYS = ("run", "step", "rank", "multiplicity", "duration")
_MOST_LABELS = 32


def breakdown(table: pd.DataFrame, ax: Axes | None = None, step: int | None = None) -> Axes:
    """Draw a table of :func:`clustersim.analysis.breakdown` as stacked bars that end at the step's duration.

    Parameters
    ----------
    table : DataFrame
    ax : Axes, optional
        where to draw; a new figure when None
    step : int, optional
        which step; the last of the table when None

    Returns
    -------
    Axes
        one bar container for each class that takes any time

    Raises
    ------
    ValueError
        when the table has no such step
    """
    rows = table[table["step"] == (table["step"].max() if step is None else step)]
    if rows.empty:
        raise ValueError(f"table: has no step {step}" if len(table) else "table: has no rows")
    ax = axes_or_new(ax)
    nanoseconds, unit = time_unit(float(rows["duration"].max()) * 1e9)
    scale = 1e9 / nanoseconds
    x = np.arange(len(rows))
    bottom = np.zeros(len(rows))
    classes = [name for name in table.columns if name not in _KEYS and (rows[name] > 0).any()]
    whole = float(rows["duration"].max()) * scale
    for name in classes:
        height = rows[name].to_numpy(np.float64) * scale
        bars = ax.bar(x, height, bottom=bottom, width=0.8, color=colour_of(name), label=name)
        bottom += height
        if len(rows) <= 16:
            share = [f"{100 * h / whole:.0f} %" if h > 0.03 * whole else "" for h in height]
            ax.bar_label(bars, share, label_type="center", fontsize="small", color=ink_on(colour_of(name)))
    several_runs = rows["run"].nunique() > 1
    names = [
        (f"{run} " if several_runs else "") + f"{rank}" + (f"\n×{multiplicity}" if multiplicity > 1 else "")
        for run, rank, multiplicity in zip(rows["run"], rows["rank"], rows["multiplicity"], strict=True)
    ]
    ticks = thinned(len(rows), _MOST_LABELS)
    ax.set_xticks(list(ticks), [names[k] for k in ticks])
    ax.set_xlim(-0.6, len(rows) - 0.4)
    ax.set_xlabel("rank (×: ranks that it stands for)" if (rows["multiplicity"] > 1).any() else "rank")
    ax.set_ylabel(f"time in step {int(rows['step'].iloc[0])} [{unit}]")
    ax.spines[["top", "right"]].set_visible(False)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return ax
