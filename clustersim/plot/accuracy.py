"""Predictions over measurements: how far off they are at which size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clustersim.plot.palette import colour_of
from clustersim.plot.panels import grid, legend_below

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["accuracy"]

_MARKERS = "osD^vP<>X"


def accuracy(table: pd.DataFrame, axes: Sequence[Axes] | None = None, by: str = "communication") -> list[Axes]:
    """Draw predicted over measured time against the payload, a panel for each hardware family.

    Parameters
    ----------
    table : DataFrame
        of :meth:`clustersim.study.validation.Validation.table`; rows that were refused are left out
    axes : sequence of Axes, optional
        where to draw, at least one a panel; a new figure when None
    by : str
        column whose values have a panel each

    Returns
    -------
    list[Axes]
        one a panel: filled markers for rows in the domain of the calibration, hollow ones for others, a colour and a
        marker a collective, a band of ±10 %

    Raises
    ------
    ValueError
        when no row was predicted, or ``axes`` are too few
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    rows = table[table["status"] == "predicted"]
    if rows.empty:
        raise ValueError("table: no row was predicted")
    names = list(dict.fromkeys(rows[by]))
    panels = grid(len(names)) if axes is None else list(axes)[: len(names)]
    if len(panels) < len(names):
        raise ValueError(f"axes: {len(panels)} are too few for {len(names)} panels")
    ratio = rows["predicted"] / rows["measured"]
    kinds = list(dict.fromkeys(rows["collective"]))
    for ax, name in zip(panels, names, strict=True):
        mine = rows[rows[by] == name]
        ax.axhspan(0.9, 1.1, color="#EBEBEB", zorder=0)
        ax.axhline(1, color="black", linewidth=0.8, zorder=1)
        for k, kind in enumerate(kinds):
            for inside, face in ((True, colour_of(kind)), (False, "none")):
                some = mine[(mine["collective"] == kind) & (mine["in_domain"] == inside)]
                if len(some):
                    ax.scatter(
                        some["nbytes"],
                        ratio[some.index],
                        s=20,
                        marker=_MARKERS[k % len(_MARKERS)],
                        facecolors=face,
                        edgecolors=colour_of(kind),
                        linewidths=0.9,
                        label=kind if inside else f"{kind}, out of domain",
                    )
        ax.set(xscale="log", yscale="log", xlabel="payload [B]", ylabel="predicted / measured time")
        ax.set_xlim(rows["nbytes"].min() / 2, rows["nbytes"].max() * 2)
        ax.set_ylim(min(0.5, ratio.min() / 1.2), max(2.0, ratio.max() * 1.2))
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.set_title(f"{name or 'not stated'}: {len(mine)} row{'s' * (len(mine) != 1)}", loc="left", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
    if axes is None:
        legend_below(panels)
    return panels
