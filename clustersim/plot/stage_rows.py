"""Rows of boxes as papers on pipeline parallelism draw them: a row a stage, a box a micro-batch's way through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clustersim.plot.palette import COLOURS, ink_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Box", "Lane", "draw_rows", "rows_or_new"]

Lane = Literal["whole", "upper", "lower"]

_NAMES = {"F": "forward", "B": "backward", "I": "backward, input", "W": "backward, weights", "O": "optimizer"}
_SHADES = {
    "F": ("#B9DDF6", "#2274B5"),
    "B": ("#B5E3A9", "#2C8A3E"),
    "I": ("#D6EBA0", "#73951B"),
    "W": ("#9ADBD3", "#0E7C74"),
    "O": (COLOURS["optimizer"], COLOURS["optimizer"]),
}
"""From the first chunk of a stage to its last."""

_EDGE, _NARROW = "#3A3A3A", 3.0  # pixels
_INSIDE = {"whole": (0.08, 0.92), "upper": (0.08, 0.5), "lower": (0.5, 0.92)}
_MOST_LABELS = 4000
_SMALLEST = 5.0  # points


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """One box of a row.

    Parameters
    ----------
    row : int
        from 0 at the top
    start, end : float
        on the time axis
    kind : {"F", "B", "I", "W", "O"}
        forward; backward, of the input, of the weights; optimizer
    micro_batch : int
        written inside where there is room; -1 for none
    shade : int
        which chunk of the stage, from 0
    lane : {"whole", "upper", "lower"}
        height of the row that it takes: two units that are overlapped share it
    """

    row: int
    start: float
    end: float
    kind: str
    micro_batch: int = -1
    shade: int = 0
    lane: Lane = "whole"


def rows_or_new(ax: Axes | None, names: Sequence[str]) -> Axes:
    """``ax``, or the axes of a new figure, wide and as high as its rows, that pyplot does not know of.

    Its margins are fixed, so that the width of a box is known before it is drawn.
    """
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    width, height = 16.0, 1.1 + min(0.42 * len(names), 10.0)
    left = 0.25 + 0.075 * max(map(len, names))
    figure = Figure(figsize=(width, height), dpi=100)
    figure.subplots_adjust(left=left / width, right=1 - 0.15 / width, bottom=0.6 / height, top=1 - 0.4 / height)
    return figure.subplots()


def draw_rows(ax: Axes, boxes: Sequence[Box], names: Sequence[str], num_shades: int) -> None:
    """Draw boxes, their micro-batches, the names of the rows and a legend.

    Parameters
    ----------
    ax : Axes
    boxes : Sequence[Box]
        at least one
    names : Sequence[str]
        of the rows, from the top down
    num_shades : int
        chunks a stage; of several the first is the lightest
    """
    from matplotlib.collections import PolyCollection

    first, last = min(b.start for b in boxes), max(b.end for b in boxes)
    # the outlines of the first and last box are drawn whole
    margin = 0.001 * (last - first) or 1e-12
    ax.set_xlim(first - margin, last + margin)
    ax.set_ylim(len(names), 0)
    ax.set_yticks([k + 0.5 for k in range(len(names))], list(names), fontsize="small")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    pixels = float(ax.get_window_extent().width) / (last - first + 2 * margin)
    kinds = [kind for kind in _NAMES if any(b.kind == kind for b in boxes)]
    for kind in kinds:
        for shade in range(num_shades):
            some = [b for b in boxes if b.kind == kind and b.shade == shade]
            if not some:
                continue
            colour = _colour(kind, shade, num_shades)
            corners = [
                [(b.start, b.row + low), (b.start, b.row + high), (b.end, b.row + high), (b.end, b.row + low)]
                for b in some
                for low, high in [_INSIDE[b.lane]]
            ]
            edges = [_EDGE if (b.end - b.start) * pixels > _NARROW else colour for b in some]
            label = _NAMES[kind] if num_shades == 1 or kind == "O" else f"{_NAMES[kind]}, chunk {shade}"
            ax.add_collection(
                PolyCollection(corners, facecolors=colour, edgecolors=edges, linewidths=0.5, label=label),
                autolim=False,
            )
    _number(ax, boxes, pixels, num_shades)
    _legend(ax, kinds, num_shades)


def _legend(ax: Axes, kinds: Sequence[str], num_shades: int) -> None:
    """An entry a kind with the shades of its chunks side by side."""
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.patches import Patch

    handles = [
        tuple(
            Patch(facecolor=_colour(kind, shade, num_shades), edgecolor=_EDGE, linewidth=0.5)
            for shade in range(1 if kind == "O" else num_shades)
        )
        for kind in kinds
    ]
    which = f" of chunks 0 to {num_shades - 1}" if num_shades > 1 else ""
    ax.legend(
        handles,
        [_NAMES[kind] + which * (k == 0) for k, kind in enumerate(kinds)],
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=len(kinds),
        frameon=False,
        handlelength=1.2 * min(num_shades, 4),
        columnspacing=1.4,
        handletextpad=0.5,
        fontsize="small",
    )


def _colour(kind: str, shade: int, num_shades: int) -> str:
    """Between the light and the dark end of a kind."""
    from matplotlib.colors import to_hex, to_rgb

    light, dark = (to_rgb(end) for end in _SHADES[kind])
    at = shade / (num_shades - 1) if num_shades > 1 else 0.0
    red, green, blue = (a + at * (b - a) for a, b in zip(light, dark, strict=True))
    return to_hex((red, green, blue))


def _number(ax: Axes, boxes: Sequence[Box], pixels: float, num_shades: int) -> None:
    """Write micro-batches into the boxes that have room, all in one size that suits nearly all of these."""
    bottom, top = ax.get_ylim()
    dots = ax.figure.dpi / 72
    row = float(ax.get_window_extent().height) / (bottom - top)
    digits = len(str(max(b.micro_batch for b in boxes)))
    # a digit is 0.62 of the size wide
    most = {b: (b.end - b.start) * pixels / (0.62 * dots * (digits + 0.4)) for b in boxes if b.micro_batch >= 0}
    room = sorted(size for size in most.values() if size >= _SMALLEST)
    if not room or 0.36 * row / dots < _SMALLEST:
        return
    points = min(9.0, 0.36 * row / dots, room[len(room) // 10])
    wide = [b for b, size in most.items() if size >= points]
    for box in sorted(wide, key=lambda b: b.start - b.end)[:_MOST_LABELS]:
        low, high = _INSIDE[box.lane]
        ax.text(
            (box.start + box.end) / 2,
            box.row + (low + high) / 2,
            str(box.micro_batch),
            ha="center",
            va="center_baseline",
            fontsize=points,
            color=ink_on(_colour(box.kind, box.shade, num_shades)),
            clip_on=True,
        )
