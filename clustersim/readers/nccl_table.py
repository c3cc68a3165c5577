"""From the tables of nccl-tests to logs: what each is of, over how many ranks, and what that was concluded from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from clustersim.collective.bound import KINDS, bus_factor
from clustersim.faults import Fault
from clustersim.readers.nccl_infer import candidates, factor_range, ranks_of
from clustersim.readers.nccl_log import NcclLog, NcclRow
from clustersim.readers.nccl_run import NcclLine, NcclRun

__all__ = ["NcclTable", "conclude", "split"]

_NAMES = {"alltoall": "all_to_all", "sendrecv": "send_recv"}

_STILL_GROWING = 0.05
"""Growth of the bus bandwidth at the largest size from which on a note says that the plateau was not reached."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NcclTable:
    """Rows of one run that have one type, operation and root."""

    path: Path
    run: NcclRun
    lines: tuple[NcclLine, ...]

    @property
    def at(self) -> str:
        """Where it stands, for notes."""
        return f"{self.path.name}, line {self.run.place}"

    @property
    def named(self) -> str:
        """The collective that the log names, empty where it names none."""
        return _NAMES.get(self.run.program, self.run.program)

    @property
    def listed(self) -> int | None:
        """Ranks of one group by the list of devices; None without a list, or with gaps in it: long ones are cut."""
        run = self.run
        if run.num_listed is not None:
            return run.num_listed or None
        if not run.ranks or len(run.ranks) != max(run.ranks) + 1:
            return None
        return len(run.ranks) // len(run.groups)

    def fault(self, key: str, value: object, rule: str, nearest: object = None) -> Fault:
        """A fault of the table as a whole."""
        place = f"line {self.run.place}"
        return Fault(
            file=str(self.path), key=f"{place}, {key}" if key else place, value=value, rule=rule, nearest=nearest
        )


def split(path: Path, run: NcclRun, lines: Sequence[NcclLine]) -> list[NcclTable]:
    """One table a type, operation and root, in the order of the file."""

    def key(line: NcclLine) -> tuple[str, str, int]:
        return line.dtype, line.redop, -2 if line.root is None else line.root

    tables = [
        NcclTable(path=path, run=run, lines=tuple(group)) for _, group in groupby(sorted(lines, key=key), key=key)
    ]
    return sorted(tables, key=lambda table: table.lines[0].number)


def conclude(
    tables: Sequence[NcclTable], collective: str | None, num_ranks: int | None
) -> tuple[list[NcclLog], list[str], list[Fault]]:
    """Logs, notes on what was inferred, and faults.

    Parameters
    ----------
    tables : Sequence[NcclTable]
        of one file
    collective, num_ranks : str, int, optional
        what the user says of all of them
    """
    possible = [_kinds(table, collective, num_ranks) for table in tables]
    told = {kinds[0] for kinds in possible if len(kinds) == 1}
    logs, notes, faults = [], [], []
    for table, kinds in zip(tables, possible, strict=True):
        ranks = num_ranks or table.listed
        if ranks == 1:
            faults.append(table.fault("", 1, "rank: a run of one rank says nothing about links"))
            continue
        by = f"by its redop {table.lines[0].redop or '-'} and busbw/algbw"
        if len(kinds) > 1 and len(told) == 1 and told <= {*kinds}:
            kinds, by = [*told], "as in the other tables of the file; its own rows would fit others too"
        if len(kinds) != 1:
            fit = f"its rows fit {', '.join(kinds)}" if kinds else "its rows fit none"
            rule = f"must be given: the log does not name the program, and {fit}"
            faults.append(table.fault("collective", None, rule, kinds[0] if kinds else None))
            continue
        if not collective and not table.named:
            notes.append(f"{table.at}: the collective is {kinds[0]}, {by}")
        ranks, remark, fault = _ranks(table, kinds[0], ranks)
        faults += [fault] if fault else []
        notes += [remark] if remark else []
        if ranks is not None and (log := _log(table, kinds[0], ranks)).rows:
            logs.append(log)
            notes += _plateau_notes(table, log)
    return logs, notes, faults


def _kinds(table: NcclTable, collective: str | None, num_ranks: int | None) -> list[str]:
    if collective or table.named:
        return [kind for kind in (collective or table.named,) if kind in KINDS]
    return candidates(table.run, table.lines, num_ranks or table.listed)


def _ranks(table: NcclTable, kind: str, ranks: int | None) -> tuple[int | None, str, Fault | None]:
    """Number of ranks, a note on where it came from, and what is wrong with it."""
    low, high = factor_range(table.lines)
    span = ranks_of(kind, low, high)
    if span is None or (ranks is not None and not span[0] <= ranks <= span[1]):
        has = f"{kind} of {ranks} ranks has {bus_factor(kind, ranks):.5g}" if ranks else f"no {kind} has it"
        found = f"{low:.5g} to {high:.5g}" if low <= high else "one that differs from row to row"
        rule = f"does not agree with the log: {has}"
        return None, "", table.fault("busbw/algbw", found, rule, None if span is None else f"{span[0]} ranks")
    if ranks is not None:
        groups = len(table.run.groups)
        note = f"{table.at}: {groups} groups of {ranks} ranks ran at the same time" if groups > 1 else ""
        return ranks, note, None
    if span[0] != span[1]:
        rule = f"must be given: the log lists no devices, or not all, and busbw/algbw fits {span[0]} to {span[1]}"
        return None, "", table.fault("num_ranks", None, rule, span[0])
    if span[0] == 1:
        return None, "", table.fault("", 1, "rank: a run of one rank says nothing about links")
    return span[0], f"{table.at}: {span[0]} ranks by busbw/algbw; the log lists no devices, or not all", None


def _log(table: NcclTable, kind: str, ranks: int) -> NcclLog:
    run, lines = table.run, sorted(table.lines, key=lambda line: (line.nbytes, line.number))
    complete = table.listed is not None
    return NcclLog(
        collective=kind,
        num_ranks=ranks,
        hosts=tuple(dict.fromkeys(run.hosts)) if complete else (),
        device=", ".join(dict.fromkeys(run.devices)),
        dtype=lines[0].dtype,
        redop=lines[0].redop,
        out_of_place=_rows(lines, "out_of_place"),
        in_place=_rows(lines, "in_place"),
        version=run.version,
        warmup=run.warmup,
        iters=run.iters,
        line=run.place,
    )


def _rows(lines: Sequence[NcclLine], half: str) -> tuple[NcclRow, ...]:
    cells = [(line, getattr(line, half)) for line in lines]
    return tuple(
        NcclRow(
            nbytes=line.nbytes,
            time_us=cell.time_us,
            algbw=cell.algbw,
            busbw=cell.busbw,
            wrong=cell.wrong,
            line=line.number,
        )
        for line, cell in cells
        if cell is not None
    )


def _plateau_notes(table: NcclTable, log: NcclLog) -> list[str]:
    notes = []
    if not table.run.footer:
        notes.append("the closing lines are missing, so it cannot be told whether all results were right")
    if all(row.wrong is None for row in log.rows):
        notes.append("results were not checked")
    if log.growth is None:
        notes.append("one size only, so it cannot be told whether its bandwidth is the plateau")
    elif log.growth > _STILL_GROWING:
        notes.append(f"a doubling still added {log.growth:.0%} of bandwidth at the largest size: the plateau is higher")
    return [f"{table.at}: {note}" for note in notes]
