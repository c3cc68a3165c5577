"""Figures to files, with nothing left behind elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from clustersim.trace.formats.whole_file import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SUFFIXES", "save"]

SUFFIXES = (".png", ".pdf", ".svg")
"""What a figure can be saved as."""


def save(draw: Callable[[], Axes], path: Path) -> Path:
    """Write a figure.

    Parameters
    ----------
    draw : callable
        draws it, and is the first to load Matplotlib where nobody has yet
    path : Path
        its suffix says how: one of :data:`SUFFIXES`

    Returns
    -------
    Path
        of the file
    """
    with _no_cache():
        figure = draw().get_figure(root=True)
        if figure is None:
            raise ValueError("draw: its axes are in no figure")
        with whole_file(path) as place:
            figure.savefig(place)
    return path


@contextmanager
def _no_cache() -> Iterator[None]:
    """When it is loaded, Matplotlib lists the fonts in the user's home: here it does so in a folder that goes."""
    if "matplotlib" in sys.modules or "MPLCONFIGDIR" in os.environ:
        yield
        return
    with TemporaryDirectory(prefix="clustersim-") as folder:
        os.environ["MPLCONFIGDIR"] = folder
        try:
            yield
        finally:
            del os.environ["MPLCONFIGDIR"]
