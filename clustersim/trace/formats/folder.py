"""A run folder: what a run was made from and what came out, written whole or not at all."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from clustersim.faults import BadInput, Fault
from clustersim.trace import collectives
from clustersim.trace.formats import parquet
from clustersim.trace.formats.whole_file import refuse_place
from clustersim.trace.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    import pandas as pd

    from clustersim.trace.result import Result

__all__ = ["MARK", "RunFolder", "fresh", "is_run_folder", "refuse_folder", "versions", "write"]

MARK = "versions.json"
"""The file that every folder written here has; without it a folder that is not empty is somebody else's."""

_PACKAGES = ("numpy", "pandas", "pyarrow", "simpy")


@dataclass(frozen=True)
class RunFolder:
    """A run folder, read when asked.

    Parameters
    ----------
    path : Path

    Raises
    ------
    BadInput
        from each property, when its file is missing or broken
    """

    path: Path

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The fields of ``run --json``."""
        return self._object("summary.json")

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """What the run was made from: settings, and the hashes of the cards behind them."""
        return self._object("inputs.json")

    @cached_property
    def trace(self) -> pd.DataFrame:
        """One row an op of each class."""
        if not (self.path / "trace.parquet").is_file():
            raise BadInput(
                [Fault(file=str(self.path), key="trace.parquet", value=None, rule="must be in a run folder")]
            )
        return parquet.read(self.path / "trace.parquet")

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """How each kind of collective ran and why, columns as in :mod:`clustersim.trace.collectives`."""
        return collectives.read(self.path / "collectives.parquet")

    def _object(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            value = json.loads(path.read_text())
        except FileNotFoundError:
            raise BadInput([Fault(file=str(self.path), key=name, value=None, rule="must be in a run folder")]) from None
        except ValueError as error:
            raise BadInput([Fault(file=str(path), key="file", value=name, rule=f"is not JSON: {error}")]) from None
        if not isinstance(value, dict):
            raise BadInput([Fault(file=str(path), key="file", value=name, rule="must be a JSON object")])
        return value


def write(result: Result, folder: Path, extras: Mapping[str, Callable[[Path], object]] | None = None) -> Path:
    """Write ``summary.json``, ``inputs.json``, ``versions.json`` and trace, classes and collectives as ``.parquet``.

    Parameters
    ----------
    result : Result
    folder : Path
        new, empty, or a run folder, which is replaced
    extras : Mapping[str, Callable], optional
        further files by name, each with what writes it to a path

    Returns
    -------
    Path
        of the folder

    Raises
    ------
    BadInput
        when the folder is somebody else's, or cannot be made
    """
    with fresh(folder) as place:
        _dump(place / "summary.json", _summary(result))
        _dump(place / "inputs.json", result.inputs)
        parquet.write(result.trace, place / "trace.parquet")
        result.classes.to_parquet(place / "classes.parquet", index=False)
        result.collectives.to_parquet(place / "collectives.parquet", index=False)
        for name, draw in (extras or {}).items():
            draw(place / name)
        _dump(place / MARK, versions())
    return folder


def versions() -> dict[str, Any]:
    """What the numbers were made with."""
    found: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "python": platform.python_version()}
    for package in ("clustersim", *_PACKAGES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a checkout that was never installed
            found[package] = None
    return found


def is_run_folder(path: Path) -> bool:
    """Whether ``path`` is a folder that was written here."""
    return (path / MARK).is_file() and (path / "summary.json").is_file()


def refuse_folder(folder: Path) -> list[Fault]:
    """What speaks against writing a folder; looked at before a run starts, so that no work is lost."""
    if folder.is_dir():
        if any(folder.iterdir()) and not (folder / MARK).is_file():
            rule = "must be new, empty or a folder of an earlier run"
            return [Fault(key="--out", value=str(folder), rule=rule, nearest=str(folder / "run"))]
    elif folder.exists():
        return [Fault(key="--out", value=str(folder), rule="must be a folder")]
    parent = next(parent for parent in folder.absolute().parents if parent.exists())
    return refuse_place(folder, parent)


@contextmanager
def fresh(folder: Path) -> Iterator[Path]:
    """A new folder beside ``folder`` that takes its place when all has gone well, and leaves no trace when not.

    Raises
    ------
    BadInput
        when ``folder`` is somebody else's, or cannot be made
    """
    faults = refuse_folder(folder)
    if faults:
        raise BadInput(faults)
    made = [parent for parent in folder.absolute().parents if not parent.exists()]
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    place = folder.absolute().with_name(f".{folder.name}.{uuid4().hex[:8]}")
    old = place.with_name(f"{place.name}.old")
    place.mkdir()
    try:
        yield place
        if folder.exists():
            folder.rename(old)
        place.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        shutil.rmtree(place, ignore_errors=True)
        for parent in made:
            parent.rmdir()
        raise
    shutil.rmtree(old, ignore_errors=True)


def _summary(result: Result) -> dict[str, Any]:
    """The public ``clustersim.summary``, by name: the one call from here to a layer above."""
    summary: dict[str, Any] = import_module("clustersim").summary(result)
    return summary


def _dump(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n")
