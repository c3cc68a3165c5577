"""A table of ops -> a data-flow graph: CSV, Parquet, or a DataFrame."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.workload.graph.graph import Graph, GraphOp, find_faults

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "read"]

_SCALING = {"sample": True, "fixed": False}


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.replace(";", " ").split())


def _number(text: str) -> float:
    return float(text)


def _count(text: str) -> int:
    value = float(text)
    if value != int(value):
        raise ValueError(text)
    return int(value)


def _scaling(text: str) -> bool:
    return _SCALING[text]


_WHOLE, _FINITE = "must be a whole number", "must be a number"
_READ: Mapping[str, tuple[str, Callable[[str], Any], str]] = {
    "op": ("name", str, ""),
    "flops": ("flops", _number, _FINITE),
    "seconds": ("seconds", _number, _FINITE),
    "nbytes": ("nbytes", _number, _FINITE),
    "out_bytes": ("out_nbytes", _number, _FINITE),
    "after": ("after", _names, ""),
    "device": ("device", _count, _WHOLE),
    "kind": ("kind", str, ""),
    "dtype": ("dtype", str, ""),
    "scaling": ("per_sample", _scaling, f"must be one of {', '.join(_SCALING)}"),
    "parameters": ("parameters", _count, _WHOLE),
    "gradient_bytes": ("gradient_nbytes", _count, _WHOLE),
    "weight_bytes": ("weight_nbytes", _count, _WHOLE),
    "launches": ("launches", _count, _WHOLE),
    "phase": ("phase", str, ""),
    "beside": ("beside", str, ""),
}
"""Column -> (field of :class:`~clustersim.workload.graph.graph.GraphOp`, how its texts are read, rule)."""

COLUMNS = tuple(_READ)
"""Every column that has a meaning; only ``op`` must be there, and every other may be empty in a row."""


def read(
    table: str | Path | pd.DataFrame, *, name: str | None = None, sources: Mapping[str, str] | None = None
) -> Graph:
    """Read a graph.

    Parameters
    ----------
    table : str, Path or DataFrame
        a ``.parquet`` file, any other file as CSV with a header, or the rows themselves; columns as
        :data:`COLUMNS`, amounts in FLOP, seconds and bytes, ``after`` as names separated by spaces or semicolons,
        ``scaling`` as ``sample`` (its amounts are those of one sample) or ``fixed``. An empty field takes the default
        of :class:`~clustersim.workload.graph.graph.GraphOp`; a row without ``flops``, ``seconds`` and ``kind`` is
        a pass over memory
    name : str, optional
        of the graph; None: the file's name
    sources : Mapping[str, str], optional
        where its numbers come from

    Raises
    ------
    BadInput
        with every unknown or missing column, every bad value, every name that is no op, and the names of a cycle; the
        key says the line of the file or the row of the DataFrame, from 1 on
    """
    file, header, rows = _parquet_or_frame(table) if _has_frame(table) else _csv(Path(str(table)))
    faults = list(_header_faults(file, header))
    ops: list[GraphOp] = []
    places: list[tuple[str, str]] = []
    for key, fields in rows:
        values, wrong = _values(file, key, fields)
        faults += wrong
        ops.append(GraphOp(**values))
        places.append((file, key))
    if "op" in header:
        wrong_keys = {fault.key for fault in faults}
        together = (replace(fault, key=_as_column(fault.key)) for fault in find_faults(ops, places))
        faults += [fault for fault in together if fault.key not in wrong_keys]
    if faults:
        raise BadInput(faults)
    return Graph(name=name or (Path(file).stem if file else "graph"), ops=tuple(ops), sources=sources or {})


_Rows = list[tuple[str, dict[str, str]]]


def _has_frame(table: str | Path | pd.DataFrame) -> bool:
    return not isinstance(table, str | Path) or Path(table).suffix == ".parquet"


def _parquet_or_frame(table: str | Path | pd.DataFrame) -> tuple[str, list[str], _Rows]:
    """File, header, and the fields of each row as texts by column."""
    import pandas as pd

    file = ""
    if isinstance(table, str | Path):
        file = str(table)
        try:
            table = pd.read_parquet(table)
        except (OSError, ValueError) as error:
            rule = f"must be a readable Parquet file: {error}"
            raise BadInput([Fault(file=file, key="file", value=file, rule=rule)]) from error
    header = [str(column) for column in table.columns]
    filled = table.astype(object).where(table.notna(), "")
    rows = [
        (f"row {k}", {name: str(value).strip() for name, value in zip(header, fields, strict=True)})
        for k, fields in enumerate(filled.itertuples(index=False, name=None), 1)
    ]
    return file, header, rows


def _csv(path: Path) -> tuple[str, list[str], _Rows]:
    """File, header, and the fields of each row by column, with the line that it begins on."""
    file, header, rows = str(path), [], []  # type: tuple[str, list[str], _Rows]
    faults = []
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            for fields in reader:
                key, line = f"line {line + 1}", reader.line_num
                stripped = [field.strip() for field in fields]
                if not any(stripped):
                    continue
                if not header:
                    header = stripped
                elif len(stripped) != len(header):
                    rule = f"fields: there must be one for each of the {len(header)} columns"
                    faults.append(Fault(file=file, key=key, value=len(fields), rule=rule, nearest=len(header)))
                else:
                    rows.append((key, dict(zip(header, stripped, strict=True))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        rule = f"must be a readable CSV file: {error}"
        raise BadInput([Fault(file=file, key=f"line {line + 1}", value=file, rule=rule)]) from error
    if faults:
        raise BadInput([*_header_faults(file, header), *faults])
    return file, header, rows


def _as_column(key: str) -> str:
    """The key of a field of an op as that of its column."""
    row, comma, field = key.rpartition(", ")
    column = next((column for column, (name, _, _) in _READ.items() if name == field), field)
    return f"{row}{comma}{column}"


def _header_faults(file: str, header: list[str]) -> Iterator[Fault]:
    if "op" not in header:
        yield Fault(file=file, key="header", value=" ".join(header), rule="must have a column op")
    for column in dict.fromkeys(header):
        if column not in COLUMNS:
            near = nearest_name(column, COLUMNS)
            yield Fault(file=file, key="header", value=column, rule="is no column that is known", nearest=near)
        elif header.count(column) > 1:
            yield Fault(file=file, key="header", value=column, rule="must be the name of one column only")


def _values(file: str, key: str, fields: Mapping[str, str]) -> tuple[dict[str, Any], list[Fault]]:
    """Fields of an op that are given and can be read, and what is wrong with the others."""
    values: dict[str, Any] = {"name": ""}
    faults = []
    for column, text in fields.items():
        if column not in _READ or not text:
            continue
        name, convert, rule = _READ[column]
        try:
            values[name] = convert(text)
        except (ValueError, OverflowError, KeyError):
            near = nearest_name(text, _SCALING) if column == "scaling" else None
            faults.append(Fault(file=file, key=f"{key}, {column}", value=text, rule=rule, nearest=near))
    if not values["name"]:
        faults.append(Fault(file=file, key=f"{key}, op", value="", rule="must be a name"))
    elif len(_names(values["name"])) != 1:
        faults.append(Fault(file=file, key=f"{key}, op", value=values["name"], rule="must have no space or semicolon"))
    if not {"kind", "seconds"} & set(values) and not values.get("flops"):
        values["kind"] = "memory"
    return values, faults
