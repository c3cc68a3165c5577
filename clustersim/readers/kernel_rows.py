"""Measured kernels: a CSV with one launch, or a few, a row."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clustersim.faults import BadInput, Fault

__all__ = ["COLUMNS", "KernelRow", "detect", "read"]

_REQUIRED = ("hardware", "op", "dtype", "m", "n", "k", "metric", "value", "unit")
_TEXTS = ("id", "group", "source", "hardware", "op", "dtype", "pass", "model", "metric", "unit", "confidence", "notes")
_COUNTS = (
    *("m", "n", "k", "batch", "seq_len", "kv_seq_len", "heads", "kv_heads", "head_dim", "hidden", "causal"),
    "tensor_parallel",
)
_ASIDE = ("url_or_repo_path", "year", "time_ms", "tflops", "gbps", "how_obtained")

COLUMNS = (*_TEXTS, *_COUNTS, "value", *_ASIDE)
"""Columns that are known; those that say the same again are not read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelRow:
    """One measurement as published.

    Parameters
    ----------
    line : int
        of the file
    id, group, source, notes, confidence : str
        name of the row, of the sweep that it belongs to, of where it was published; what its source says beside
    hardware, op, dtype, model : str
        as published
    passes : str
        ``fwd``, ``bwd`` or ``fwd+bwd``
    metric, unit : str
        what ``value`` is
    value : float
    counts : Mapping[str, int]
        shape by column, those that are given: m, n, k, batch, seq_len, kv_seq_len, heads, kv_heads, head_dim, hidden,
        causal, tensor_parallel
    """

    line: int
    id: str
    group: str
    source: str
    notes: str
    confidence: str
    hardware: str
    op: str
    dtype: str
    model: str
    passes: str
    metric: str
    unit: str
    value: float
    counts: Mapping[str, int]


def detect(path: str | Path) -> bool:
    """Whether the file begins with a header that has every required column."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
    return {*_REQUIRED} <= {name.strip() for name in header}


def read(path: str | Path) -> tuple[tuple[KernelRow, ...], list[str]]:
    """Read measurements.

    Parameters
    ----------
    path : str or Path
        a CSV with a header; an empty field is a value that is not known

    Returns
    -------
    rows : tuple[KernelRow, ...]
    notes : list[str]
        columns that are not known here

    Raises
    ------
    BadInput
        with every missing column and every bad value: line, column, value, rule
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            header = list(reader.fieldnames or ())
            records = [(reader.line_num, fields) for fields in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        rule = f"must be a readable CSV file: {error}"
        raise BadInput([Fault(file=str(path), key="file", value=str(path), rule=rule)]) from error
    faults = [
        Fault(file=str(path), key=f"line 1, column {name}", value=None, rule="must be there")
        for name in _REQUIRED
        if name not in header
    ]
    if not faults and not records:
        faults.append(Fault(file=str(path), key="file", value=path.name, rule="must have rows below its header"))
    rows = []
    for line, fields in () if faults else records:
        if None in fields or None in fields.values():
            rule = f"must have a field for each of the {len(header)} columns"
            faults.append(Fault(file=str(path), key=f"line {line}", value=None, rule=rule))
            continue
        row, wrong = _row(path, line, {name: text.strip() for name, text in fields.items()})
        faults += wrong
        if row is not None:
            rows.append(row)
    if faults:
        raise BadInput(faults)
    unknown = [name for name in header if name not in COLUMNS]
    notes = [f"columns that are not known here were left out: {', '.join(unknown)}"] if unknown else []
    return tuple(rows), notes


def _row(path: Path, line: int, given: Mapping[str, str]) -> tuple[KernelRow | None, list[Fault]]:
    faults = []
    counts: dict[str, int] = {}
    for name in _COUNTS:
        if text := given.get(name, ""):
            number = _number(text)
            if number is None or number != int(number) or number < (0 if name == "causal" else 1):
                rule = "must be 0 or 1" if name == "causal" else "must be a whole number from 1"
                faults.append(Fault(file=str(path), key=f"line {line}, column {name}", value=text, rule=rule))
            else:
                counts[name] = int(number)
    value = _number(given["value"])
    if value is None or value <= 0:
        rule = "must be a finite number above 0"
        faults.append(Fault(file=str(path), key=f"line {line}, column value", value=given["value"], rule=rule))
    if faults or value is None:
        return None, faults
    texts = {name: given.get(name, "") for name in _TEXTS}
    passes = texts.pop("pass")
    return KernelRow(line=line, **texts, passes=passes, value=value, counts=counts), []


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
