"""Who did what when: a row for each stream of each rank, or for each rank when there are many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clustersim.plot.canvas import axes_or_new, thinned, time_unit
from clustersim.plot.palette import COLOURS, colour_of, ink_on
from clustersim.trace.schema import CATEGORIES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["first_work_ns", "timeline"]

MOST_RANKS = 64
"""Ranks drawn when none are named."""

_MOST_ROWS, _MOST_ROW_LABELS, _MOST_RANK_LABELS, _MOST_BAR_LABELS = 128, 48, 32, 600
_NARROW = 4.0  # pixels
_GAP = 0.5  # between ranks, in heights of a row


def timeline(
    trace: pd.DataFrame,
    ranks: Iterable[int] | None = None,
    ax: Axes | None = None,
    step: int | None = None,
    window: tuple[float, float] | None = None,
) -> Axes:
    """Draw ops as bars from start to end, coloured by category, communication by its mesh axis.

    More than 128 streams would be too thin to read: then a rank has one row, in which compute covers what runs beside
    it and what shows of the rest is exposed.

    Parameters
    ----------
    trace : DataFrame
        with the columns of :data:`clustersim.trace.schema.COLUMNS`
    ranks : Iterable[int], optional
        which ranks, from top to bottom; when None all in the trace, of more than 64 an even choice that the title tells
    ax : Axes, optional
        where to draw; a new figure when None, reached as ``ax.figure``
    step : int, optional
        one step only, from its first op; what the host launched ahead of that, beside the step before, is not drawn
    window : tuple[float, float], optional
        draw from here to there only, in seconds as the axis counts them [s]

    Returns
    -------
    Axes
        one PolyCollection for each category, labelled with it

    Raises
    ------
    ValueError
        when nothing is left to draw
    """
    rows, origin = trace, 0
    if step is not None:
        rows = trace[trace["step"] == step]
        origin = first_work_ns(rows) if len(rows) else 0
        rows = rows[(rows["end_ns"] > origin) | (rows["start_ns"] == origin)]
    present = np.unique(rows["rank"].to_numpy())
    shown = _choose(present) if ranks is None else np.array([int(r) for r in ranks])
    rows = rows[rows["rank"].isin(shown)]
    if rows.empty:
        raise ValueError(f"trace: no op of ranks {shown.tolist()}" + ("" if step is None else f" in step {step}"))
    ax = axes_or_new(ax)
    first, last = max(origin, int(rows["start_ns"].min())), int(rows["end_ns"].max())
    if window is not None:
        first, last = (origin + round(at * 1e9) for at in window)
        rows = rows[(rows["end_ns"] > first) & (rows["start_ns"] < last)]
        if rows.empty:
            raise ValueError(f"window: no op between {window[0]} and {window[1]} s")
    lasting = rows[rows["end_ns"] > rows["start_ns"]]
    rows = rows if lasting.empty else lasting  # markers take no time: a row of them would be an empty one
    nanoseconds, unit = time_unit(last - first)
    left = (rows["start_ns"].clip(lower=first).to_numpy() - origin) / nanoseconds
    right = (rows["end_ns"].clip(upper=last).to_numpy() - origin) / nanoseconds
    queues = rows.groupby(["run", "rank", "stream"], observed=True).ngroups
    height, labels, ranks_at = _rows(rows, shown, merge=queues > _MOST_ROWS)
    colours = _colour_keys(rows)
    ax.set_xlim(left.min(), max(right.max(), left.min() + 1e-9))
    _bars(ax, left, right, height, colours)
    ax.set_ylim(height.max() + 1 + _GAP / 2, -_GAP / 2)
    _name_rows(ax, labels, ranks_at)
    ax.set_xlabel(f"time since the step's first op [{unit}]" if step is not None else f"time [{unit}]")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=12, frameon=False, handlelength=1, columnspacing=1.2)
    if len(shown) < len(present) and ranks is None:
        ax.set_title(f"{len(shown)} of {len(present)} ranks", loc="right", fontsize="medium")
    _name_bars(ax, rows, left, right, height, colours)
    return ax


def first_work_ns(rows: pd.DataFrame) -> int:
    """When the first op of a step's rows begins, launches aside, which a host may issue beside the step before [ns]."""
    work = rows[rows["category"] != "launch"]
    return int((rows if work.empty else work)["start_ns"].min())


def _choose(present: NDArray[np.integer]) -> NDArray[np.integer]:
    if len(present) <= MOST_RANKS:
        return present
    evenly: NDArray[np.integer] = present[np.linspace(0, len(present) - 1, MOST_RANKS).round().astype(int)]
    return evenly


def _rows(
    rows: pd.DataFrame, shown: NDArray[np.integer], merge: bool
) -> tuple[NDArray[np.float64], dict[float, str], dict[float, str]]:
    """Top of each op's bar; names of the rows and of the ranks by their middle."""
    several_runs = rows["run"].nunique() > 1
    top = np.zeros(len(rows))
    labels: dict[float, str] = {}
    ranks_at: dict[float, str] = {}
    at = 0.0
    rank, run, stream = (rows[name].to_numpy() for name in ("rank", "run", "stream"))
    category = rows["category"].to_numpy()
    for wanted in shown:
        for job in dict.fromkeys(run[rank == wanted]):
            mine = np.flatnonzero((rank == wanted) & (run == job))
            name = f"{job} rank {wanted}" if several_runs else f"rank {wanted}"
            ranks_at[at + 0.5] = name
            if merge:
                top[mine] = at
                labels[at + 0.5] = name
                at += 1
                continue
            queues = dict.fromkeys(stream[mine])
            work = {q: min(CATEGORIES.index(c) for c in set(category[mine[stream[mine] == q]])) for q in queues}
            for k, queue in enumerate(sorted(queues, key=work.__getitem__)):
                top[mine[stream[mine] == queue]] = at
                labels[at + 0.5] = f"{queue}" if k else f"{name}  {queue}"
                at += 1
            at += _GAP
    return top, labels, ranks_at


def _colour_keys(rows: pd.DataFrame) -> NDArray[np.object_]:
    """Category of each op, for a communication its axis."""
    category = rows["category"].to_numpy().astype(object)
    axis = np.array([str(group).split("/")[0] for group in rows["group"].astype("category").cat.categories], object)
    is_communication = category == "communication"
    category[is_communication] = axis[rows["group"].astype("category").cat.codes.to_numpy()[is_communication]]
    return category


def _bars(
    ax: Axes,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    top: NDArray[np.float64],
    colours: NDArray[np.object_],
) -> None:
    """Bars by colour; wide ones with a white edge, narrow ones with one of their own colour, so that none vanishes."""
    from matplotlib.collections import PolyCollection

    order = list(COLOURS)
    wide = (right - left) * _pixels_per_unit(ax) > _NARROW
    for layer, key in enumerate(sorted(set(colours), key=lambda k: order.index(k) if k in order else len(order))):
        mine = colours == key
        x = np.stack([left[mine], left[mine], right[mine], right[mine]], axis=1)
        y = top[mine, None] + np.array([0.06, 0.94, 0.94, 0.06])
        corners: Any = np.stack(
            [x, y], axis=2
        )  # as one array, which its stub does not know, it takes a tenth of the time
        edges = np.where(wide[mine], "white", colour_of(key))
        bars = PolyCollection(corners, facecolors=colour_of(key), edgecolors=edges.tolist(), linewidths=0.4, label=key)
        bars.set_zorder(2 - layer / 100)
        ax.add_collection(bars, autolim=False)


def _pixels_per_unit(ax: Axes) -> float:
    low, high = ax.get_xlim()
    return float(ax.get_window_extent().width / (high - low))


def _name_rows(ax: Axes, labels: dict[float, str], ranks_at: dict[float, str]) -> None:
    """A label for each row while they can be read, otherwise for ranks, otherwise for some ranks."""
    named = labels
    if len(labels) > _MOST_ROW_LABELS:
        middles = list(ranks_at)
        named = {middles[k]: ranks_at[middles[k]] for k in thinned(len(middles), _MOST_RANK_LABELS)}
    ax.set_yticks(list(named), list(named.values()), fontsize="small")


def _name_bars(
    ax: Axes,
    rows: pd.DataFrame,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    top: NDArray[np.float64],
    colours: NDArray[np.object_],
) -> None:
    """Write the op's name into bars that are wide enough for it, its micro-batch into those wide enough for that."""
    bottom, upper = ax.get_ylim()
    row_height = ax.get_window_extent().height / abs(bottom - upper)
    points = min(8.0, 0.6 * row_height * 72 / ax.figure.dpi)
    if points < 5:
        return
    character = 0.62 * points * ax.figure.dpi / 72
    room = (right - left) * _pixels_per_unit(ax) / character
    if len(np.unique(top)) < rows.groupby(["run", "rank", "stream"], observed=True).ngroups:
        room[~np.isin(colours, ("compute", "optimizer"))] = 0  # other bars may lie under these
    names = rows["name"].to_numpy()
    micro_batch = rows["micro_batch"].to_numpy()
    for k in np.argsort(-room, kind="stable")[:_MOST_BAR_LABELS]:
        text = str(names[k])
        if len(text) > room[k] - 1:
            text = str(micro_batch[k]) if micro_batch[k] >= 0 else ""
        if text and len(text) <= room[k] - 0.5:
            ax.text(
                (left[k] + right[k]) / 2,
                top[k] + 0.5,
                text,
                ha="center",
                va="center",
                fontsize=points,
                color=ink_on(colour_of(colours[k])),
                clip_on=True,
            )
