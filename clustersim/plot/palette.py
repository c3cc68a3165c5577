"""One colour for each category, the same in all figures.

Chosen so that every two of a figure stay apart for people who do not see red or green (a test simulates both).
"""

from __future__ import annotations

import zlib

__all__ = ["COLOURS", "SERIES", "colour_of", "ink_on"]

_COMPUTE, _OPTIMIZER, _ORANGE, _PINK, _GREEN, _SKY, _GREY, _RED, _BROWN, _PALE = (
    "#0072B2",
    "#440450",
    "#E69F00",
    "#E279A8",
    "#40B669",
    "#4DD6FF",
    "#61605E",
    "#D23A00",
    "#602A00",
    "#EBEBEB",
)

COLOURS = {
    "compute": _COMPUTE,
    "optimizer": _OPTIMIZER,
    "tp": _ORANGE,
    "cp": "#FAF500",
    "ep": _BROWN,
    "pp": _RED,
    "dp": _PINK,
    "copy": _GREEN,
    "storage": "#00261C",
    "host": _SKY,
    "launch": _SKY,
    "bubble": _PALE,
    "wait": _GREY,
    "weights": _COMPUTE,
    "gradients": _SKY,
    "activations": _ORANGE,
    "communication": _PINK,
    "workspace": _GREEN,
    "context": _GREY,
    "all_reduce": _COMPUTE,
    "all_gather": _ORANGE,
    "reduce_scatter": _PINK,
    "all_to_all": _GREEN,
    "send_recv": _RED,
    "broadcast": _SKY,
    "reduce": _GREY,
    "gather": _BROWN,
    "scatter": _OPTIMIZER,
    "barrier": _PALE,
}
"""Colour by category of op, mesh axis of a communication, class of a breakdown, category of memory or collective."""

SERIES = (_COMPUTE, _ORANGE, _GREEN, _PINK, _OPTIMIZER, _SKY, _RED, _GREY, _BROWN)
"""Colours of things that are no category, one after the other."""

_OTHERS = ("#8C6BB1", "#B3A369", "#5B7F95", "#A3A500", "#C49C94", "#7F9F7F")


def colour_of(name: str) -> str:
    """Colour of a category; one that is not in :data:`COLOURS` always gets the same one of a few others.

    ``exposed_comm.tp`` has the colour of ``tp``, ``exposed_copy`` that of ``copy``.
    """
    key = name.removeprefix("exposed_comm.").removeprefix("exposed_")
    return COLOURS.get(key) or _OTHERS[zlib.crc32(key.encode()) % len(_OTHERS)]


def ink_on(colour: str) -> str:
    """Black or white, whichever is read more easily on ``colour`` (relative luminance of sRGB, threshold 0.2)."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return "black" if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.2 else "white"
