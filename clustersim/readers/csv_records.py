"""A CSV with a header -> its records by column, each with the line that it begins on."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from clustersim.faults import BadInput, Fault

__all__ = ["header", "id_twice", "left_out", "lines", "missing", "named_twice", "records"]


def header(path: str | Path) -> tuple[str, ...]:
    """Names of the columns; empty where the file is not readable as CSV."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            return tuple(name.strip() for name in next(csv.reader(file), []))
    except (OSError, UnicodeDecodeError, csv.Error):
        return ()


def records(path: str | Path) -> tuple[tuple[str, ...], list[tuple[int, dict[str, str]]]]:
    """Header and records; empty lines are left out, and fields have no blanks around them.

    Raises
    ------
    BadInput
        when the file is not CSV, a column's name is there twice, a record has another number of fields, or there is
        none
    """
    path = Path(path)
    names, found = lines(path)
    faults = named_twice(path, names)
    rule = f"fields: there must be one for each of the {len(names)} columns"
    faults += [
        Fault(file=str(path), key=f"line {line}", value=len(fields), rule=rule)
        for line, fields in found
        if len(fields) != len(names)
    ]
    if not found:
        faults.append(Fault(file=str(path), key="file", value=path.name, rule="must have rows below its header"))
    if faults:
        raise BadInput(faults)
    return names, [(line, dict(zip(names, fields, strict=True))) for line, fields in found]


def named_twice(path: Path, names: Sequence[str]) -> list[Fault]:
    """Names that are those of several columns."""
    return [
        Fault(file=str(path), key="line 1", value=name, rule="must be the name of one column only")
        for name in dict.fromkeys(names)
        if name and names.count(name) > 1
    ]


def missing(path: Path, names: Collection[str], required: Sequence[str]) -> list[Fault]:
    """Columns that must be there and are not."""
    return [
        Fault(file=str(path), key=f"line 1, column {name}", value=None, rule="must be there")
        for name in required
        if name not in names
    ]


def left_out(names: Sequence[str], known: Collection[str]) -> list[str]:
    """A note on the columns that are not known; none where all are."""
    unknown = [name for name in names if name not in known]
    return [f"columns that are not known here were left out: {', '.join(unknown)}"] if unknown else []


def id_twice(path: Path, line: int, name: str, first: dict[str, int]) -> Iterator[Fault]:
    """An id that an earlier row has; ``first`` keeps the line of each, rows without one have none."""
    if name and first.setdefault(name, line) != line:
        rule = f"must be the id of one row only; it is that of line {first[name]} too"
        yield Fault(file=str(path), key=f"line {line}, column id", value=name, rule=rule)


def lines(path: Path) -> tuple[tuple[str, ...], list[tuple[int, list[str]]]]:
    """Header, and the fields of each record, however many, with the line that it begins on.

    Raises
    ------
    BadInput
        when the file is not CSV, or has not even a header
    """
    found: list[tuple[int, list[str]]] = []
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for fields in reader:
                if any(field.strip() for field in fields):
                    found.append((line + 1, [field.strip() for field in fields]))
                line = reader.line_num
    except csv.Error as error:
        rule = f"must be CSV: {error}"
        raise BadInput([Fault(file=str(path), key=f"line {line + 1}", value=None, rule=rule)]) from error
    except (OSError, UnicodeDecodeError) as error:
        rule = f"must be a readable CSV file: {error}"
        raise BadInput([Fault(file=str(path), key="file", value=str(path), rule=rule)]) from error
    if not found:
        raise BadInput([Fault(file=str(path), key="file", value=path.name, rule="must have a header and rows")])
    return tuple(found[0][1]), found[1:]
