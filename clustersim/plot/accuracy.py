"""Predictions over measurements: how far off they are at which size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clustersim.plot.palette import colour_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["accuracy"]

_MARKERS = "osD^vP<>X"
_MOST_COLUMNS = 3


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
    panels = _panels(len(names)) if axes is None else list(axes)[: len(names)]
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
        _legend(panels)
    return panels


def _panels(count: int) -> list[Axes]:
    """Axes of a new figure that pyplot does not know of, as square a grid as fits."""
    from matplotlib.figure import Figure

    num_columns = min(count, _MOST_COLUMNS)
    num_rows = -(-count // num_columns)
    figure = Figure(figsize=(5.3 * num_columns + 0.6, 3.6 * num_rows + 0.9), dpi=100, layout="constrained")
    grid = figure.subplots(num_rows, num_columns, squeeze=False).ravel().tolist()
    for ax in grid[count:]:
        ax.remove()
    return grid[:count]


def _legend(panels: Sequence[Axes]) -> None:
    """One legend below all panels."""
    entries: dict[str, Artist] = {}
    for ax in panels:
        handles, labels = ax.get_legend_handles_labels()
        entries |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in entries}
    figure = panels[0].get_figure(root=True)
    if figure is not None:
        names = sorted(entries)
        figure.legend(
            [entries[name] for name in names],
            names,
            loc="outside lower center",
            ncols=min(len(names), 4),
            frameon=False,
        )
