"""Figures to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SUFFIXES", "save"]

SUFFIXES = (".png", ".pdf", ".svg")
"""What a figure can be saved as."""


def save(ax: Axes, path: Path) -> Path:
    """Write the figure of ``ax``; the suffix says how."""
    figure = ax.figure
    figure.savefig(path)  # type: ignore[union-attr]
    return path
