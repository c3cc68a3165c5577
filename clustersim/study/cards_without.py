"""Cards of kernels and collectives as they would be without what one publisher measured."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from clustersim.library.measurements import measurement_files
from clustersim.readers import collective_rows, csv_records, kernel_rows
from clustersim.study.calibration import Calibration, calibrate
from clustersim.study.card_text import card_text
from clustersim.study.kernels.calibrate_files import start_of
from clustersim.study.kernels.calibration import calibrate_kernels, part_of
from clustersim.study.kernels.card_text import kernel_card_text
from clustersim.study.kernels.measured import MeasuredKernel
from clustersim.study.kernels.measured import place as place_kernels
from clustersim.study.measured import Measured, locate
from clustersim.study.starts import network_start, node_start

__all__ = ["cards_without", "library_with", "publishers"]

_EVIDENCE = "least squares without what one publisher measured"


def publishers(path: Path) -> dict[int, str]:
    """Who published each row of a file, by its line: the repository or the address, else the source as it stands."""
    return {line: _publisher(given) for line, given in csv_records.records(path)[1]}


def cards_without(publisher: str) -> dict[str, str]:
    """Cards that rest on what ``publisher`` measured, calibrated on the library's other rows.

    Each calibration begins where those of the shipped cards began, and what no other row bears on stays there. Cards
    that took numbers over from these are not changed.

    Returns
    -------
    dict[str, str]
        path below the folder of parts -> content; empty where it measured nothing that calibrates
    """
    kernels, collectives = _kernels(), _collectives()
    found: dict[str, str] = {}
    for name in sorted({row.gpu.name for row, by in kernels if by == publisher}):
        of = [(row, by) for row, by in kernels if row.gpu.name == name]
        start = start_of(name, {part_of(row) for row, _ in of})
        fitted = calibrate_kernels([row for row, by in of if by != publisher], start)
        found[f"kernels/{name}.toml"] = kernel_card_text(fitted, description=f"Kernels of {name}", start=start)
    mine = [row for row, by in collectives if by == publisher]
    nodes, networks = {row.node for row in mine}, {row.network for row in mine}
    others = [row for row, by in collectives if by != publisher and (row.node in nodes or row.network in networks)]
    starts = Calibration(
        nodes={name: node_start(name) for name in nodes | {row.node for row in others}},
        networks={name: network_start(name) for name in networks | {row.network for row in others}},
    )
    best = calibrate(others, starts)
    for kind, names, cards, began in (
        ("communication", nodes, best.nodes, starts.nodes),
        ("transport", networks, best.networks, starts.networks),
    ):
        for name in sorted(names):
            found[f"{kind}/{name}.toml"] = card_text(
                cards[name],
                description=f"Collectives of {name}",
                evidence=_EVIDENCE,
                residual={},
                determined=best.determined.get(name, frozenset()),
                start=began[name],
            )
    return found


@contextmanager
def library_with(texts: Mapping[str, str]) -> Iterator[None]:
    """Let processes that start meanwhile find these cards before those of the library."""
    before = os.environ.get("CLUSTERSIM_PATH")
    with TemporaryDirectory(prefix="clustersim-") as folder:
        for name, text in texts.items():
            path = Path(folder) / "topologies" / "parts" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        os.environ["CLUSTERSIM_PATH"] = folder if not before else os.pathsep.join((folder, before))
        try:
            yield
        finally:
            if before is None:
                del os.environ["CLUSTERSIM_PATH"]
            else:
                os.environ["CLUSTERSIM_PATH"] = before


def _publisher(given: Mapping[str, str]) -> str:
    address = given.get("url_or_repo_path", "")
    first, _, _ = address.partition(" ")
    return first if "/" in first else address or given.get("source", "")


def _file(stem: str) -> Path:
    return next(path for path in measurement_files() if path.stem == stem)


@cache
def _kernels() -> tuple[tuple[MeasuredKernel, str], ...]:
    """Rows that calibrate kernels, and who published them."""
    path = _file("kernels")
    by = publishers(path)
    return tuple((row, by[row.row.line]) for row in place_kernels(kernel_rows.read(path)[0])[0])


@cache
def _collectives() -> tuple[tuple[Measured, str], ...]:
    """Rows that calibrate collectives, and who published them."""
    path = _file("collectives")
    by = publishers(path)
    placed, _ = locate(row for row in collective_rows.read(path)[0] if row.confidence != "low")
    return tuple((row, by[row.row.line]) for row in placed)
