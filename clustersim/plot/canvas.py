"""What the figures share: where they are drawn and in which unit of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes_or_new", "thinned", "time_unit"]


def axes_or_new(ax: Axes | None) -> Axes:
    """``ax``, or the axes of a new figure of 16 by 9 inches that pyplot does not know of."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(16, 9), dpi=100, layout="constrained").subplots()


def time_unit(span_ns: float) -> tuple[float, str]:
    """Nanoseconds in the unit that suits a span of time, and its name."""
    for nanoseconds, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if span_ns >= nanoseconds:
            return nanoseconds, name
    return 1.0, "ns"


def thinned(count: int, most: int) -> range:
    """Positions of at most ``most`` of ``count`` labels, evenly spaced from the first."""
    return range(0, count, -(-count // most) if count else 1)
