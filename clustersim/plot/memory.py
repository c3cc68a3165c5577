"""Bytes held by a rank over time, stacked by category."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clustersim.plot.canvas import axes_or_new, time_unit
from clustersim.plot.palette import colour_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["memory"]

_GIB = 2**30


def memory(
    table: pd.DataFrame,
    rank: int | None = None,
    tier: str = "gpu",
    capacity: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a table of :func:`clustersim.analysis.memory` for one rank and tier.

    Parameters
    ----------
    table : DataFrame
        of one job
    rank : int, optional
        which rank; the one with the highest peak when None
    tier : str
        ``gpu``, ``host_pinned`` …
    capacity : int, optional
        a line at so many bytes [B]
    ax : Axes, optional
        where to draw; a new figure when None

    Returns
    -------
    Axes
        one stacked area for each category

    Raises
    ------
    ValueError
        when the rank holds nothing in the tier
    """
    rows = table[(table["tier"] == tier) & (True if rank is None else table["rank"] == rank)]
    if rows.empty:
        raise ValueError(f"table: {'no rank' if rank is None else f'rank {rank}'} holds nothing in {tier}")
    stacks = {r: _stack(rows[rows["rank"] == r]) for r in np.unique(rows["rank"]).tolist()}
    drawn = max(stacks, key=lambda r: sum(stacks[r][1].values(), np.zeros(1)).max()) if rank is None else rank
    time_ns, held = stacks[drawn]
    ax = axes_or_new(ax)
    nanoseconds, unit = time_unit(float(time_ns[-1]))
    order = sorted(held, key=lambda name: (-held[name].min(), name))  # what never goes away lies at the bottom
    ax.stackplot(
        time_ns / nanoseconds,
        [held[name] / _GIB for name in order],
        labels=order,
        colors=[colour_of(name) for name in order],
        step="post",
    )
    total = sum(held.values(), np.zeros(1))
    peak = int(np.argmax(total))
    ax.annotate(
        f"peak {total[peak] / _GIB:.4g} GiB",
        (time_ns[peak] / nanoseconds, total[peak] / _GIB),
        xytext=(8, 6),
        textcoords="offset points",
    )
    highest = float(total[peak])
    if capacity is not None:
        ax.axhline(capacity / _GIB, color="black", linestyle="--", linewidth=1)
        place = {"xy": (1, capacity / _GIB), "xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
        ax.annotate(f"capacity {capacity / _GIB:.4g} GiB", xytext=(-4, 4), ha="right", **place)  # type: ignore[arg-type]
        highest = max(highest, capacity)
    ax.set_xlim(0, time_ns[-1] / nanoseconds if time_ns[-1] else 1)
    ax.set_ylim(0, 1.1 * highest / _GIB if highest > 0 else 1)
    ax.set_xlabel(f"time [{unit}]")
    ax.set_ylabel(f"{tier} memory of rank {drawn} [GiB]")
    ax.spines[["top", "right"]].set_visible(False)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return ax


def _stack(rows: pd.DataFrame) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """The instants at which any category changes, and what each holds from there on [B]."""
    instants = np.unique(rows["time_ns"].to_numpy())
    held = {}
    for category, one in rows.groupby("category", observed=True):
        at = np.searchsorted(one["time_ns"].to_numpy(), instants, side="right") - 1
        held[str(category)] = np.where(at >= 0, one["nbytes"].to_numpy()[at], 0).astype(np.float64)
    return instants, held
