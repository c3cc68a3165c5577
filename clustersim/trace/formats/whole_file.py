"""A file that is written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from clustersim.faults import Fault

__all__ = ["refuse_file", "refuse_place", "whole_file"]


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path beside ``path`` to write to: it takes the place of ``path`` when all has gone well, and goes when not.

    What is there and is no file, a pipe or ``/dev/stdout``, is written to itself.

    Raises
    ------
    OSError
        when the folder cannot be written
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        yield path
        return
    path = path.resolve()
    with TemporaryDirectory(dir=path.parent, prefix=".clustersim-") as folder:
        place = Path(folder) / path.name  # the name says how the file is written: its suffixes
        yield place
        place.replace(path)


def refuse_file(path: Path, example: str) -> list[Fault]:
    """What speaks against writing a file; looked at before work begins, so that none is lost.

    Parameters
    ----------
    path : Path
    example : str
        name of such a file, to be told where ``path`` is a folder
    """
    if path.is_dir():
        return [Fault(key="--out", value=str(path), rule="must be a file", nearest=str(path / example))]
    if path.exists() and not path.is_file():
        return []
    if not path.absolute().parent.is_dir():
        return [Fault(key="--out", value=str(path), rule="must be in a folder that exists")]
    return refuse_place(path, path.absolute().parent)


def refuse_place(path: Path, parent: Path) -> list[Fault]:
    """What speaks against making ``path`` in a folder that exists."""
    try:
        with TemporaryDirectory(dir=parent):  # rights alone do not tell: a file system may be read-only or full
            return []
    except OSError as error:
        rule = f"must be in a folder that can be written: {parent}: {error.strerror}"
        return [Fault(key="--out", value=str(path), rule=rule)]
