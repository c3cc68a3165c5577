"""What pictures of clusters are made of: boxes, cables whose width tells their capacity, and labels on them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING

from clustersim.plot.palette import ink_on
from clustersim.topology.node_outline import Tie
from clustersim.units import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CABLE", "box", "cable", "label", "tie_text", "width_of"]

CABLE = "#61605E"
"""Colour of a cable."""


def width_of(capacity: float) -> float:
    """Line width of a cable [points]: one more for each doubling above 20 GB/s, from 0.7 to 7."""
    return min(7.0, max(0.7, 1.0 + log2(max(capacity, 1.0) / 20e9)))


def tie_text(tie: Tie, count: int = 1) -> str:
    """``8 x 48 GB/s``; with the number of parallel links where there are several."""
    each = show(tie.capacity, "B/s")
    links = f" ({tie.num_links:,} links)" if tie.num_links > 1 else ""
    return f"{count:,} x {each}{links}" if count > 1 else f"{each}{links}"


def box(
    ax: Axes, centre: tuple[float, float], extent: tuple[float, float], text: str, colour: str, fontsize: float
) -> None:
    """A box with a text in it.

    Parameters
    ----------
    centre, extent : tuple[float, float]
        x and y of its middle; width and height
    fontsize : float
        [points]
    """
    from matplotlib.patches import FancyBboxPatch

    (x, y), (width, height) = centre, extent
    pad = 0.12 * min(width, height)
    patch = FancyBboxPatch(
        (x - width / 2 + pad, y - height / 2 + pad),
        width - 2 * pad,
        height - 2 * pad,
        boxstyle=f"round,pad={pad}",
        facecolor=colour,
        edgecolor="white",
        linewidth=0.8,
        zorder=3,
    )
    ax.add_patch(patch)
    ax.text(x, y, text, ha="center", va="center", color=ink_on(colour), fontsize=fontsize, zorder=4, linespacing=1.15)


def cable(ax: Axes, x: Sequence[float], y: Sequence[float], capacity: float, colour: str = CABLE) -> None:
    """A cable through points; its width tells its capacity [B/s]."""
    ax.plot(x, y, color=colour, linewidth=width_of(capacity), solid_capstyle="round", zorder=1)


def label(ax: Axes, x: float, y: float, text: str, *, fontsize: float = 9, ha: str = "center") -> None:
    """A text on the cables that it is about."""
    ax.text(
        x,
        y,
        text,
        ha=ha,
        va="center",
        fontsize=fontsize,
        zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.88, "pad": 1.5},
    )
