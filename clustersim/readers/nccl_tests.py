"""Output of nccl-tests and rccl-tests -> :class:`clustersim.readers.nccl_log.NcclLog`.

Text of every version since 2.0 (with ``error`` or ``#wrong``, with or without operation and root, one or both halves,
several runs in one file) and the JSON that recent versions write with ``-J``.
"""

from __future__ import annotations

from pathlib import Path

from clustersim.collective.bound import KINDS
from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.readers.json_object import load_object
from clustersim.readers.nccl_infer import MOST_RANKS
from clustersim.readers.nccl_json import looks_like_json, read_json
from clustersim.readers.nccl_log import NcclLog
from clustersim.readers.nccl_run import NcclRun
from clustersim.readers.nccl_table import NcclTable, conclude, split
from clustersim.readers.nccl_text import looks_like_text, read_text

__all__ = ["detect", "read"]

_NOT_MODELLED = ("alltoallv", "hypercube")


def detect(path: str | Path) -> bool:
    """Whether the file is text with a table or the arguments of nccl-tests in it, or the JSON of one run."""
    try:
        if _is_json(Path(path)):
            return looks_like_json(load_object(path).values)
        return looks_like_text(_text(Path(path)))
    except BadInput:
        return False


def read(
    path: str | Path, *, collective: str | None = None, num_ranks: int | None = None
) -> tuple[tuple[NcclLog, ...], list[str]]:
    """Read all runs of a file.

    Parameters
    ----------
    path : str or Path
    collective : str, optional
        what all runs are of, where the log neither names it nor tells by its numbers
    num_ranks : int, optional
        how many ranks all runs had, likewise

    Returns
    -------
    logs : tuple[NcclLog, ...]
        one for each run, type and operation, in the order of the file
    notes : list[str]
        what was inferred and from what, and what was left out

    Raises
    ------
    BadInput
        with every fault of the file: runs of one rank, without rows, that stop before their last size or have wrong
        results say nothing about links; and what can neither be read nor inferred
    """
    path = Path(path)
    faults = _argument_faults(collective, num_ranks)
    if _is_json(path):
        found = load_object(path)
        if not looks_like_json(found.values):
            other = _refuse(path, "file", path.name, "must be output of nccl-tests -J")
            raise BadInput([*faults, *found.faults, other])
        runs, wrong = [read_json(found)], found.faults
    else:
        runs, wrong = read_text(path, _text(path))
        if not runs and not wrong:
            wrong = [_refuse(path, "file", path.name, "must have a table of nccl-tests in it")]
    faults += wrong
    notes: list[str] = []
    tables: list[NcclTable] = []
    for run in runs:
        faults += _run_faults(path, run)
        lines = [line for line in run.lines if line.nbytes]
        if len(lines) < len(run.lines):
            notes.append(f"{path.name}, line {run.place}: rows of 0 bytes left out: {len(run.lines) - len(lines)}")
        if run.program not in _NOT_MODELLED:
            tables += split(path, run, lines)
    logs, told, refused = conclude(tables, collective, num_ranks)
    faults += refused
    if faults:
        raise BadInput(sorted(faults, key=_line_number))
    return tuple(logs), notes + told


def _line_number(fault: Fault) -> int:
    words = fault.key.replace(",", "").split()
    return int(words[1]) if words[0] == "line" else 0


def _is_json(path: Path) -> bool:
    return _text(path).lstrip("\ufeff \t\r\n").startswith("{")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadInput([_refuse(path, "file", str(path), f"must be a readable file: {error.strerror}")]) from error


def _refuse(path: Path, key: str, value: object, rule: str, nearest: object = None) -> Fault:
    return Fault(file=str(path), key=key, value=value, rule=rule, nearest=nearest)


def _argument_faults(collective: str | None, num_ranks: int | None) -> list[Fault]:
    faults = []
    if collective is not None and collective not in KINDS:
        rule, near = f"must be one of {', '.join(KINDS)}", nearest_name(collective, KINDS)
        faults.append(Fault(key="collective", value=collective, rule=rule, nearest=near))
    if num_ranks is not None and not 2 <= num_ranks <= MOST_RANKS:
        faults.append(Fault(key="num_ranks", value=num_ranks, rule=f"must be from 2 to {MOST_RANKS}", nearest=2))
    return faults


def _run_faults(path: Path, run: NcclRun) -> list[Fault]:
    """What makes a run as a whole useless, and its wrong results."""
    place = f"line {run.place}"
    if not run.lines and not run.num_rows:
        return [_refuse(path, place, run.program or None, "has no rows: the run hung, failed or was cut off")]
    faults = []
    if run.cut_short:
        last = max(line.nbytes for line in run.lines)
        rule = (
            f"is the last size, {run.max_bytes} was asked for and the closing lines are missing: the table is cut off"
        )
        faults.append(_refuse(path, f"line {run.lines[-1].number}", last, rule))
    wrong = 0
    for line in run.lines:
        for half, cell in (("out of place", line.out_of_place), ("in place", line.in_place)):
            if cell is not None and cell.wrong:
                wrong += cell.wrong
                faults.append(_refuse(path, f"line {line.number}", cell.wrong, f"wrong elements {half}; must be 0"))
    if run.out_of_bounds and not wrong:
        faults.append(_refuse(path, place, run.out_of_bounds, "values out of bounds in this run; must be 0"))
    if run.program in _NOT_MODELLED:
        faults.append(_refuse(path, place, f"{run.program}_perf", "is of no collective that is modelled"))
    return faults
