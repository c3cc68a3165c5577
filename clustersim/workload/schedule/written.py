"""A user's own schedule, written down unit by unit."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.workload.schedule.placed import PlacedSchedule
from clustersim.workload.schedule.placement import Placement, bidirectional, loop, vee
from clustersim.workload.schedule.unit import Kind, Overlapped, Table, Unit, units_of

__all__ = ["from_table", "is_path", "read_table"]

_KINDS: Mapping[str, Kind] = {kind: kind for kind in get_args(Kind)}
_UNIT = re.compile(r"([FBIW])(\d+)(?:\.(\d+))?")
_KEYS = ("rows", "placement")
_PLACEMENTS: Mapping[str, Callable[[int, int], Placement]] = {
    "loop": loop,
    "vee": vee,
    "bidirectional": bidirectional,
}


@dataclass(frozen=True, slots=True)
class _Written:
    """A schedule that has one table, whatever it is asked for; what does not fit is for ``check`` to say."""

    rows: tuple[tuple[Unit | Overlapped, ...], ...]

    def __call__(self, num_stages: int, num_virtual: int, num_micro_batches: int) -> Table:
        return self.rows


def from_table(rows: Sequence[Sequence[str]], *, placement: str = "loop", name: str = "own") -> PlacedSchedule:
    """A schedule from text.

    Parameters
    ----------
    rows : sequence of sequences of str
        for each stage its units in order: a letter of F, B, I, W, the micro-batch, and after a point the chunk, 0
        when left out, such as ``F0``, ``I3.1``; ``F4.0+B1.1`` for two that are overlapped
    placement : {"loop", "vee", "bidirectional"}
        where the chunks stand
    name : str
        as results name it

    Returns
    -------
    PlacedSchedule
        with this one table

    Raises
    ------
    BadInput
        with every text that is no unit
    """
    return _schedule(rows, placement, name, file="")


def is_path(schedule: object) -> bool:
    """Whether a plan's schedule is the path of a table, not a short name."""
    return isinstance(schedule, str) and ("/" in schedule or schedule.endswith((".csv", ".toml")))


def read_table(path: str | Path) -> PlacedSchedule:
    """A schedule from a file, named after it.

    Parameters
    ----------
    path : str or Path
        ``.csv``: a line a stage, a cell a unit as in :func:`from_table`; a first line ``placement,vee`` when the
        chunks do not stand in a loop; empty cells are passed over. ``.toml``: ``rows``, an array of strings, a stage
        each, with its units separated by spaces, and ``placement``

    Returns
    -------
    PlacedSchedule

    Raises
    ------
    BadInput
        with every fault of the file, or when it cannot be read
    """
    file = str(path)
    suffix = Path(path).suffix
    if suffix not in (".csv", ".toml"):
        raise BadInput([Fault(key="suffix", value=suffix, rule="must be .csv or .toml", nearest=".csv", file=file)])
    try:
        text = Path(path).read_text(encoding="utf-8")
        rows, placement = _from_csv(text) if suffix == ".csv" else _from_toml(text, file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, csv.Error) as error:
        raise BadInput([Fault(key="schedule", value=file, rule=f"cannot be read: {error}", file=file)]) from error
    return _schedule(rows, placement, Path(path).stem, file=file)


def _from_csv(text: str) -> tuple[list[list[str]], str]:
    lines = [[cell.strip() for cell in line if cell.strip()] for line in csv.reader(text.splitlines())]
    lines = [line for line in lines if line]
    if lines and lines[0][0] == "placement":
        return lines[1:], " ".join(lines[0][1:])
    return lines, "loop"


def _from_toml(text: str, file: str) -> tuple[list[list[str]], str]:
    read = tomllib.loads(text)
    faults = [
        Fault(key=key, value=read[key], rule="must be rows or placement", nearest=nearest_name(key, _KEYS), file=file)
        for key in read
        if key not in _KEYS
    ]
    rows, placement = read.get("rows"), read.get("placement", "loop")
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        faults.append(Fault(key="rows", value=rows, rule="must be an array of strings, one a stage", file=file))
    if not isinstance(placement, str):
        faults.append(Fault(key="placement", value=placement, rule=_placement_rule(), nearest="loop", file=file))
    if faults:
        raise BadInput(faults)
    return [str(row).split() for row in rows or ()], str(placement)


def _placement_rule() -> str:
    return f"must be one of {', '.join(_PLACEMENTS)}"


def _schedule(rows: Sequence[Sequence[str]], placement: str, name: str, file: str) -> PlacedSchedule:
    faults: list[Fault] = []
    if placement not in _PLACEMENTS:
        near = nearest_name(placement, _PLACEMENTS)
        faults.append(Fault(key="placement", value=placement, rule=_placement_rule(), nearest=near, file=file))
    if not rows:
        faults.append(Fault(key="rows", value=list(rows), rule="must have a row for each stage", file=file))
    elif not any(rows):
        faults.append(Fault(key="rows", value=list(rows), rule="must have at least one unit", file=file))
    table = []
    for stage, row in enumerate(rows):
        entries: list[Unit | Overlapped] = []
        for k, text in enumerate(row):
            entry = _entry(text)
            if isinstance(entry, str):
                faults.append(Fault(key=f"stage {stage}, unit {k}", value=text, rule=entry, file=file))
            else:
                entries.append(entry)
        table.append(tuple(entries))
    if not faults and placement != "loop":
        faults += [
            Fault(key=f"stage {s}, {unit}", value=unit.chunk, rule=f"must be chunk 0 or 1 of a {placement}", file=file)
            for s, unit in _beyond(table, 2)
        ]
    if faults:
        raise BadInput(faults)
    return PlacedSchedule(
        name=name,
        table=_Written(tuple(table)),
        placement=_PLACEMENTS[placement],
        num_virtual=1 + max(u.chunk for row in table for u in units_of(row)) if placement == "loop" else 2,
    )


def _entry(text: str) -> Unit | Overlapped | str:
    """The unit or pair that a text stands for, else what is wrong with it."""
    units = []
    for part in text.split("+"):
        found = _UNIT.fullmatch(part.strip())
        if not found:
            return "must be F, B, I or W with a micro-batch and a chunk, such as F0, I3.1 or F4.0+B1.1"
        units.append(Unit(_KINDS[found[1]], int(found[2]), int(found[3] or 0)))
    if len(units) == 1:
        return units[0]
    if len(units) > 2 or units[0].kind != "F" or units[1].kind not in ("B", "I"):
        return "must pair a forward (F) with a backward (B or I), in this order"
    return Overlapped(*units)


def _beyond(table: Sequence[Sequence[Unit | Overlapped]], num_virtual: int) -> Iterator[tuple[int, Unit]]:
    for stage, row in enumerate(table):
        yield from ((stage, unit) for unit in units_of(row) if unit.chunk >= num_virtual)
