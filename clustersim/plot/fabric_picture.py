"""A fabric as a picture: its levels one above the other, of each the first few members and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np

from clustersim.plot.node_picture import Frame
from clustersim.plot.palette import colour_of
from clustersim.plot.shapes import CABLE, box, cable, label, tie_text
from clustersim.topology.fabric_level import Level
from clustersim.topology.fabric_outline import FabricOutline
from clustersim.topology.node_outline import Tie

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_fabric"]

_NODE, _SWITCH = "compute", "tp"

_PLURAL = {"leaf": "leaves", "core": "cores"}

_DASHED = (0, (3, 3))
"""A link to what is not drawn."""

_GRID_SIDE = 4
"""Nodes of a grid that are drawn along each of two sides."""


def draw_fabric(ax: Axes, fabric: FabricOutline, frame: Frame) -> None:
    """Draw a fabric; what is left out is counted."""
    ax.text(frame.x(0), frame.y(0.98), fabric.title, ha="left", va="top", fontsize=12, weight="bold")
    if fabric.dims:
        _grid(ax, fabric, frame)
    else:
        _levels(ax, fabric.levels, frame, base=0.10 + 0.03 * len(fabric.remarks))
    for k, remark in enumerate(reversed(fabric.remarks)):
        ax.text(frame.x(0), frame.y(0.01 + 0.03 * k), remark, ha="left", va="bottom", fontsize=9)


def _levels(ax: Axes, levels: tuple[Level, ...], frame: Frame, base: float) -> None:
    top = 0.80 if levels[-1].peers else 0.88
    gap = min(0.24, (top - base) / max(1, len(levels) - 1))
    lowest = max(base, (base + top - gap * (len(levels) - 1)) / 2)
    height = [frame.y(lowest + gap * k) for k in range(len(levels))]
    places = [_places(level, frame) for level in levels]
    for k, level in enumerate(levels[:-1]):
        for child, parents in zip(level.drawn, level.parents, strict=True):
            _climb(ax, level.up, (places[k][child], height[k]), [places[k + 1].get(p) for p in parents], height[k + 1])
        if level.up:
            most = "at most " if level.at_most else ""
            text = f"{most}{tie_text(level.up, level.num_up)} a {level.name}, each way"
            label(ax, frame.x(0.42), (height[k] + height[k + 1]) / 2, text)
    for level, where, y in zip(levels, places, height, strict=True):
        _members(ax, level, where, frame, y)


def _climb(ax: Axes, up: Tie | None, child: tuple[float, float], parents: Sequence[float | None], high: float) -> None:
    """From a child to its parents: cables, dots where it only belongs to them, a stub where none of them is drawn."""
    x, low = child
    drawn = [parent for parent in parents if parent is not None]
    for parent in drawn:
        if up:
            cable(ax, [x, parent], [low, high], up.capacity)
        else:
            ax.plot([x, parent], [low, high], color=CABLE, linewidth=1.0, linestyle=":", zorder=1)
    if not drawn:
        ax.plot([x, x], [low, low + 0.4 * (high - low)], color=CABLE, linewidth=1.0, linestyle=_DASHED, zorder=1)


def _members(ax: Axes, level: Level, places: dict[int, float], frame: Frame, y: float) -> None:
    colour = colour_of(_NODE if level.name == "node" else _SWITCH)
    spread = frame.width * 0.70 / max(len(places), 3)
    extent = (min(1.1, 0.86 * spread), 0.055 * frame.height)
    if level.peers and level.count > 1:
        _peers(ax, level, level.peers, places, frame, y)
    for member, x in places.items():
        name = level.name if level.count == 1 else f"{level.name} {member:,}"
        box(ax, (x, y), extent, name, colour, 9)
    drawn = sorted(places)
    if drawn[-1] - drawn[-2:][0] > 1:
        middle = (places[drawn[-1]] + places[drawn[-2]]) / 2
        ax.text(middle, y, "…", ha="center", va="center", fontsize=14)
    if level.count == 1:
        text = f"{level.num_switches:,} switches" if level.num_switches > 1 else ""
    else:
        text = f"x {level.count:,} {_PLURAL.get(level.name, level.name + 's')}"
        text += f"\nof {level.num_switches:,} switches" if level.num_switches > 1 else ""
    ax.text(frame.x(0.80), y, text, ha="left", va="center", fontsize=10)


def _peers(ax: Axes, level: Level, tie: Tie, places: dict[int, float], frame: Frame, y: float) -> None:
    """Links among the members of one level, as arcs above them."""
    angle = np.linspace(0, np.pi, 30)
    within = (
        level.drawn
        if not level.peers_within
        else [m for m, p in zip(level.drawn, level.parents, strict=True) if p == level.parents[0]]
    )
    for a, b in combinations(within, 2):
        left, right = places[a], places[b]
        lift = 0.09 * frame.height * (0.4 + 0.6 * (right - left) / frame.width)
        x = (left + right) / 2 - (right - left) / 2 * np.cos(angle)
        cable(ax, x.tolist(), (y + 0.02 * frame.height + lift * np.sin(angle)).tolist(), tie.capacity)
    among = f" of {level.peers_within}" if level.peers_within else ""
    label(ax, frame.x(0.38), y + 0.105 * frame.height, f"between each two{among}: {tie_text(tie)}, each way")


def _places(level: Level, frame: Frame) -> dict[int, float]:
    """x of each member drawn; the last one stands apart where some are left out."""
    drawn = level.drawn
    slots = list(range(len(drawn)))
    if len(drawn) > 1 and drawn[-1] - drawn[-2] > 1:
        slots[-1] += 1
    width = frame.width * 0.78
    return {
        member: frame.left + width * (slot + 0.5) / (slots[-1] + 1) for member, slot in zip(drawn, slots, strict=True)
    }


def _grid(ax: Axes, fabric: FabricOutline, frame: Frame) -> None:
    """The first nodes along two sides; a third one is told in words."""
    axes = [(name, side) for name, side in zip("xyz", fabric.dims, strict=False) if side > 1]
    sides = [side for _, side in axes[:2]] + [1] * (2 - min(2, len(axes)))
    across, up = (min(side, _GRID_SIDE) for side in sides)
    step = min(frame.width * 0.84 / max(across, 2), 0.58 * frame.height / max(up, 2))
    x = [frame.x(0.5) + step * (i - (across - 1) / 2) for i in range(across)]
    y = [frame.y(0.42) + step * (j - (up - 1) / 2) for j in range(up)]
    for yj in y:
        for xi, xj in pairwise(x):
            cable(ax, [xi, xj], [yj, yj], fabric.axes[0].capacity)
        for end, way in _ends(x, sides[0], wrap=fabric.wrap):
            ax.plot([end, end + way * 0.48 * step], [yj, yj], color=CABLE, linewidth=1.2, linestyle=_DASHED, zorder=1)
    for xi in x:
        for yi, yj in pairwise(y):
            cable(ax, [xi, xi], [yi, yj], fabric.axes[1].capacity)
        for end, way in _ends(y, sides[1], wrap=fabric.wrap):
            ax.plot([xi, xi], [end, end + way * 0.48 * step], color=CABLE, linewidth=1.2, linestyle=_DASHED, zorder=1)
    for xi in x:
        for yj in y:
            box(ax, (xi, yj), (0.5 * step, 0.34 * step), "node", colour_of(_NODE), 9)
    count = fabric.levels[0].count
    lines = [f"x {count:,} nodes" + (f", {across * up} drawn" if across * up < count else "")]
    lines += [
        f"{name}: {side} nodes, {tie_text(tie)} to a neighbour, each way"
        for (name, side), tie in zip(axes, fabric.axes, strict=True)
    ]
    if fabric.wrap:
        lines.append("dashed: on along the side, and round to its other end")
    ax.text(frame.x(0), frame.y(0.92), "\n".join(lines), ha="left", va="top", fontsize=10, linespacing=1.4)


def _ends(places: Sequence[float], side: int, *, wrap: bool) -> list[tuple[float, int]]:
    """Where a line goes on beyond the nodes that are drawn, and which way."""
    onward = [(places[-1], 1)] if side > len(places) or (wrap and side > 2) else []
    return [*onward, (places[0], -1)] if wrap and side > 2 else onward
