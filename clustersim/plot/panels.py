"""Figures of several panels with one legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["grid", "legend_below"]

_MOST_COLUMNS = 3
_LETTERS = 11
"""Of a legend to an inch."""


def grid(count: int, *, dpi: int = 100) -> list[Axes]:
    """Axes of a new figure that pyplot does not know of, as square a grid as fits."""
    from matplotlib.figure import Figure

    num_columns = min(count, _MOST_COLUMNS)
    num_rows = -(-count // num_columns)
    figure = Figure(figsize=(5.3 * num_columns + 0.6, 3.6 * num_rows + 0.9), dpi=dpi, layout="constrained")
    axes = figure.subplots(num_rows, num_columns, squeeze=False).ravel().tolist()
    for ax in axes[count:]:
        ax.remove()
    return axes[:count]


def legend_below(panels: Sequence[Axes], title: str | None = None) -> None:
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
            ncols=max(1, min(len(names), 4, int(_LETTERS * figure.get_figwidth()) // (max(map(len, names)) + 8))),
            frameon=False,
            title=title,
        )
