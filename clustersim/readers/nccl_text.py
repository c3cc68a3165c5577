"""The text that nccl-tests and rccl-tests print, of every version since 2.0, into runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from clustersim.faults import Fault
from clustersim.readers.nccl_run import NcclCell, NcclLine, NcclRun

__all__ = ["looks_like_text", "read_text"]

_LABEL = re.compile(r"^\s*(\[\d+,\d+\]<\w+>:|\d+:(?=\s))")  # what mpirun --tag-output and srun --label put before
_PROGRAM = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|reduce|gather|scatter|sendrecv|hypercube)_perf\b"
)
_ARGUMENTS = re.compile(r"#\s*nThreads?:?\s+\d+")
_NUMBER = {
    "min_bytes": re.compile(r"minBytes:?\s+(\d+)"),
    "max_bytes": re.compile(r"maxBytes:?\s+(\d+)"),
    "warmup": re.compile(r"warmup ?iters:?\s+(\d+)", re.IGNORECASE),
    "iters": re.compile(r"(?<!warmup )(?<!agg )\biters:?\s+(\d+)"),
}
_STEP = re.compile(r"step:?\s+(\d+)\s*\((factor|bytes)\)")
_LESS = re.compile(r"#\s*Reducing maxBytes to (\d+)")
_RANK = re.compile(
    r"#?\s*Rank\s+(\d+)(?:\s+Group\s+(\d+))?\s+Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*?)\s*$"
)
_LIBRARY = re.compile(r"^\s*#?\s*([NR]CCL) version\s*:?\s*(\S+)")
_CODE = re.compile(r"\bnccl-library=(\d+)")
_OUT_OF_BOUNDS = re.compile(r"#\s*Out of bounds values\s*:\s*(\d+)")
_FAILURE = re.compile(r"\bTest (NCCL|CUDA|HIP|RCCL)? ?failure\b")
_CELL = ("algbw", "busbw")


def looks_like_text(text: str) -> bool:
    """Whether a line of the arguments or the header of a table is in it."""
    return any(_ARGUMENTS.search(line) or _columns(line) for line in text.splitlines())


def read_text(path: Path, text: str) -> tuple[list[NcclRun], list[Fault]]:
    """All runs of a file, one after the other, and the lines that are no good."""
    runs = [NcclRun()]
    faults: list[Fault] = []
    columns: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _LABEL.sub("", raw)
        found, run = _columns(line), runs[-1]
        if _begins(line, run) or (found and run.header is not None):
            faults += _add_rows(path, run, columns, rows)
            columns, rows = [], []
            # A table that follows without a word is of the same program.
            run = NcclRun(program=run.program, version=run.version) if found else NcclRun()
            runs.append(run)
        if found:
            run.header, columns = number, found
            run.counts_wrong = "wrong" in columns
            if "cputime" in columns:
                rule = "is the time of the CPU, not that of the collective"
                faults.append(Fault(file=str(path), key=f"line {number}", value="cputime", rule=rule))
        elif columns and re.match(r"\s*\d+\s+\d+(\s|$)", line):
            rows.append((number, line.split()))
        elif _FAILURE.search(line):
            rule = "the run failed here"
            faults.append(Fault(file=str(path), key=f"line {number}", value=line.strip()[:80], rule=rule))
        else:
            _note(run, number, line)
        run.num_rows = len(rows)
    faults += _add_rows(path, runs[-1], columns, rows)
    return [run for run in runs if run.is_run], faults


def _begins(line: str, run: NcclRun) -> bool:
    """Whether another run starts on this line."""
    if _ARGUMENTS.search(line):
        return run.is_run
    over = run.footer or run.num_rows > 0
    if re.search(r"#\s*(nccl-tests version|Collective test starting)", line):
        return over
    return over and bool(_PROGRAM.search(line)) and "concluded" not in line


def _columns(line: str) -> list[str]:
    """Names of the columns, where the line is the header of a table: what was sent, then one half or two alike."""
    words = line.replace("#wrong", "wrong").lstrip("# ").split()
    names = ["time" if word == "cputime" else word for word in words if word != "timestamp"]
    if names[:3] != ["size", "count", "type"] or "time" not in names:
        return []
    first = names.index("time")
    results = names[first:]
    half = len(results) // 2
    once = results[:half] if results[:half] == results[half:] else results
    whole = all(once.count(name) == 1 for name in ("time", "algbw", "busbw"))
    return words if whole and {*names[3:first]} <= {"redop", "root"} else []


def _note(run: NcclRun, number: int, line: str) -> None:
    """Keep what a line outside the table says about the run."""
    if (named := _PROGRAM.search(line)) and not run.program:
        run.program = named[1]
    if _ARGUMENTS.search(line):
        run.start = number
        for name, pattern in _NUMBER.items():
            if found := pattern.search(line):
                setattr(run, name, int(found[1]))
        if step := _STEP.search(line):
            run.step, run.step_is_factor = int(step[1]), step[2] == "factor"
    elif rank := _RANK.search(line):
        run.ranks.add(int(rank[1]))
        run.groups.add(rank[2] or "0")
        run.hosts.append(rank[3])
        run.devices.append(rank[4])
    elif less := _LESS.search(line):
        run.max_bytes = int(less[1])
    elif library := _LIBRARY.search(line):
        run.version = f"{library[1]} {library[2]}"
    elif (code := _CODE.search(line)) and not run.version:
        run.version = f"NCCL {version_of(int(code[1]))}"
    elif wrong := _OUT_OF_BOUNDS.search(line):
        run.out_of_bounds, run.footer = int(wrong[1]), True
    elif re.search(r"#\s*Avg bus bandwidth", line):
        run.footer = True


def version_of(code: int) -> str:
    """``2.30.7`` of NCCL's 23007; up to 2.8 a version had one digit fewer."""
    digits = 10_000 if code >= 10_000 else 1000
    return f"{code // digits}.{code % digits // 100}.{code % 100}"


def _add_rows(path: Path, run: NcclRun, columns: list[str], rows: list[tuple[int, list[str]]]) -> Iterator[Fault]:
    """Read the lines of one table, and say what is wrong with them.

    Some versions leave the columns of operation and root blank for some collectives, or the half in place, in all
    lines of a table: so the longest line tells how many words a whole one has.
    """
    if "timestamp" in columns:  # a day and an hour, after both halves
        columns, rows = columns[:-1], [(number, words[:-2]) for number, words in rows]
    whole = max((len(words) for _, words in rows), default=0)
    first = next((k for k, name in enumerate(columns) if name in ("time", "cputime")), 0)
    names = ["time" if name == "cputime" else name for name in columns[first:]]
    each = len(names) // 2 if names.count("busbw") == 2 else len(names)
    for number, words in rows:
        given = dict(zip(columns[:3], words, strict=False))
        rest = words[3:]
        if "redop" in columns and rest and rest[0].isalpha() and rest[0].lower() not in ("nan", "inf"):
            given["redop"] = rest.pop(0)
        if "root" in columns and len(rest) % each == 1 and re.fullmatch(r"-?\d+", rest[0]):
            given["root"] = rest.pop(0)
        if len(words) < whole or len(rest) not in (each, 2 * each):
            rule = f"is cut off, or joined with another line: {len(words)} words for {len(columns)} columns"
            yield Fault(file=str(path), key=f"line {number}", value=" ".join(words)[:80], rule=rule)
            continue
        cells: list[NcclCell | None] = [None, None]
        for half in range(len(rest) // each):
            texts = dict(zip(names[:each], rest[half * each :][:each], strict=True))
            cells[half] = _cell(texts)
            if cells[half] is None:
                rule = "must be a time above 0, bandwidths and a count, all of them finite numbers"
                yield Fault(file=str(path), key=f"line {number}", value=" ".join(texts.values()), rule=rule)
        run.lines.append(
            NcclLine(
                number=number,
                nbytes=int(words[0]),
                dtype=given["type"],
                redop=given.get("redop", ""),
                root=int(given["root"]) if "root" in given else None,
                out_of_place=cells[0],
                in_place=cells[1],
            )
        )


def _cell(texts: dict[str, str]) -> NcclCell | None:
    """Numbers of half a line; None where they are none."""
    try:
        value = {name: float(texts[name]) for name in ("time", *_CELL)}
        wrong = _wrong(texts)
    except ValueError:
        return None
    if not all(0 <= x < math.inf for x in value.values()) or value["time"] == 0:
        return None
    return NcclCell(
        time_us=value["time"],
        algbw=value["algbw"],
        busbw=value["busbw"],
        algbw_half_unit=_half_unit(texts["algbw"]),
        busbw_half_unit=_half_unit(texts["busbw"]),
        wrong=wrong,
    )


def _wrong(texts: dict[str, str]) -> int | None:
    """Number of wrong elements. The older ``error`` is the largest difference, marked with a star when too large."""
    text = texts.get("wrong", texts.get("error", "N/A"))
    if text == "N/A":
        return None
    number = float(text.rstrip("*"))
    if "error" in texts:
        return int(text.endswith("*") or number != number)
    return round(number)


def _half_unit(text: str) -> float:
    """Half of the last digit of a number: 0.005 of ``118.87``."""
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)
