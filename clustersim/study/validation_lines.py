"""Lines of reports of predictions beside measurements, readable at 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from clustersim.analysis.report import wrapped
from clustersim.study.validated_row import ValidatedRow

__all__ = ["assumed_lines", "in_percent", "refused_lines", "table_lines"]

_WIDTH, _MOST_LINES = 80, 4


def table_lines(title: str, head: str, lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A line for each group, its name above it where that is long.

    Parameters
    ----------
    title : str
        stands where the names do
    head : str
        of the columns, as wide as the cells
    lines : Iterable[tuple[str, str]]
        names of groups and their cells
    """
    room = _WIDTH - len(head)
    if len(title) >= room:
        yield title
    yield f"{title if len(title) < room else '':<{room}}{head}"
    for name, cells in lines:
        shown = f"  {name or 'not stated'}"
        if len(shown) >= room:
            yield wrapped(shown)
            shown = ""
        yield f"{shown:<{room}}{cells}"


def in_percent(value: float | None, sign: str = "", *, width: int = 5) -> str:
    """A fraction in percent with one decimal where ``width`` characters hold it; ``-`` where there is none."""
    if value is None:
        return "-"
    percent = 100 * value
    if abs(percent) < 10 ** (width - 3):
        return f"{percent:{sign}.1f}"
    return f"{percent:{sign}.0f}" if abs(percent) < 10 ** (width - 1) else f"> 1e{width - 1}"


def refused_lines(rows: Sequence[ValidatedRow]) -> list[str]:
    """Reasons with their lines of the file, the most frequent first; of several files, one after the other.

    Behind a reason stand the values of its first row; those of the others are in --json and --out.
    """
    by: dict[tuple[str, str], list[int]] = {}
    details: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.status == "refused":
            by.setdefault((row.file, row.reason), []).append(row.line)
            details.setdefault((row.file, row.reason), []).append(row.detail)
    several = len({row.file for row in rows}) > 1
    files = list(dict.fromkeys(file for file, _ in by))
    told = []
    for (file, reason), lines in sorted(by.items(), key=lambda item: (files.index(item[0][0]), -len(item[1]))):
        shown = ", ".join(map(str, lines[:_MOST_LINES])) + (", ..." if len(lines) > _MOST_LINES else "")
        where = f"{file} " if several else ""
        first = details[file, reason][0]
        why = f"{', the first' if len({*details[file, reason]}) > 1 else ''}: {first}" if first else ""
        told.append(wrapped(f"  {len(lines):>4}  {reason} ({where}line{'s' * (len(lines) > 1)} {shown}){why}"))
    return ["refused", *told] if told else []


def assumed_lines(rows: Sequence[ValidatedRow], meaning: Mapping[str, str]) -> list[str]:
    """Kinds of assumptions and of how many rows they are; each row's own are in --json and --out.

    Parameters
    ----------
    rows : Sequence[ValidatedRow]
    meaning : Mapping[str, str]
        first word of an assumption -> what it means
    """
    count = Counter(kind for row in rows for kind in {text.partition(":")[0] for text in row.assumptions})
    told = [wrapped(f"  {count[kind]:>4}  {text}") for kind, text in meaning.items() if count[kind]]
    return ["assumed", *told] if told else []
