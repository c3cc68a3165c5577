"""What commands print: faults, JSON, progress; one place for exit codes."""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clustersim.faults import Fault

__all__ = [
    "BAD_INPUT",
    "FAILED",
    "OK",
    "WIDTH",
    "described",
    "fault_fields",
    "fault_line",
    "num_cores",
    "pairs",
    "print_json",
    "progress",
    "refuse",
    "wrapped",
    "written_text",
]

OK, FAILED, BAD_INPUT = 0, 1, 2
"""Exit codes: it went well; the run failed, its answer is printed all the same; the input has faults."""

WIDTH = 80
"""Columns of a terminal that texts are made for. A fault stays one line, whatever its length: it is for searching."""


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refuse(faults: Iterable[Fault], as_json: bool) -> int:
    """Print faults, one line each on stderr and with ``--json`` as one object on stdout; the exit code."""
    told = list(faults)
    for fault in told:
        print(fault_line(fault), file=sys.stderr)
    if as_json:
        print_json({"status": "bad_input", "errors": [fault_fields(fault) for fault in told]})
    return BAD_INPUT


def fault_fields(fault: Fault) -> dict[str, Any]:
    """A fault as JSON has it."""
    return {name: getattr(fault, name) for name in ("file", "key", "value", "rule", "nearest")}


def fault_line(fault: Fault) -> str:
    """``file: key: value rule; nearest: …`` without what there is not."""
    place = f"{fault.file}: {fault.key}" if fault.file else fault.key
    value = "" if fault.value is None else f"{_short(repr(_plain(fault.value)))} "
    near = str(fault.nearest).lower() if isinstance(fault.nearest, bool) else _plain(fault.nearest)
    nearest = "" if fault.nearest is None else f"; nearest: {near}"
    return f"{place}: {value}{fault.rule}{nearest}"


def wrapped(text: str, *, indent: str = "") -> str:
    """``text`` in lines of 80 columns, those behind the first four columns further in; no word is cut."""
    return _filled(text, indent, f"{indent}    ")


def described(head: str, text: str) -> str:
    """``text`` behind ``head``, its further lines under its first."""
    return _filled(text, head, " " * len(head)) if text else head.rstrip()


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values in two columns; a value that is too long for its line stands under its name."""
    listed = list(rows)
    column = max((len(name) for name, _ in listed), default=0) + 2
    return "\n".join(
        f"{name:<{column}}{value}".rstrip()
        if column + len(value) <= WIDTH
        else f"{name}\n{_filled(value, '    ', '    ')}"
        for name, value in listed
    )


def _filled(text: str, first: str, others: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def written_text(out: Path, names: Iterable[str]) -> str:
    """What stands in a folder now, and where that is."""
    return wrapped(f"written to {out}: {', '.join(names)}")


def print_json(value: Any) -> None:
    """Print one JSON value; no number in it is infinite or NaN."""
    json.dump(_plain(value), sys.stdout, indent=2, allow_nan=False)
    print()


@contextmanager
def progress(label: str, *, total: int | None = None) -> Iterator[Callable[[float], None] | None]:
    """A bar on stderr, to be called with how far it is; None where stderr is no terminal.

    Parameters
    ----------
    label : str
    total : int, optional
        where it ends; when None it counts seconds of simulated time
    """
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    shown = "{desc}: {n:.3f} s simulated in {elapsed}" if total is None else None
    with tqdm(desc=label, total=total, leave=False, bar_format=shown, file=sys.stderr) as bar:

        def move(at: float) -> None:
            bar.update(at - bar.n)

        yield move


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}..."


def _plain(value: Any) -> Any:
    """``value`` in the types that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.as_posix() if isinstance(value, Path) else str(value)
