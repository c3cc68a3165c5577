"""Measured kernels: a CSV with one launch, or a few, a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clustersim.faults import BadInput, Fault
from clustersim.readers.csv_number import Misread, number, whole
from clustersim.readers.csv_records import header, id_twice, left_out, missing, records

__all__ = ["COLUMNS", "KernelRow", "detect", "read"]

_REQUIRED = ("hardware", "op", "dtype", "m", "n", "k", "metric", "value", "unit")
_TEXTS = ("id", "group", "source", "hardware", "op", "dtype", "pass", "model", "metric", "unit", "confidence", "notes")
_COUNTS = (
    *("m", "n", "k", "batch", "seq_len", "kv_seq_len", "heads", "kv_heads", "head_dim", "hidden", "causal"),
    *("tensor_parallel", "value_dim", "window"),
)
_ASIDE = ("url_or_repo_path", "year", "time_ms", "tflops", "gbps", "how_obtained")

_LARGEST = 2**53

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
        causal, tensor_parallel; value_dim, of attention, the columns of a value where they are not those of a key, and
        window, the keys that a query meets at most
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
    return {*_REQUIRED} <= {*header(path)}


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
    names, found = records(path)
    faults = missing(path, names, _REQUIRED)
    first: dict[str, int] = {}
    rows = []
    for line, given in () if faults else found:
        row, wrong = _row(path, line, given)
        faults += [*wrong, *id_twice(path, line, given.get("id", ""), first)]
        if row is not None:
            rows.append(row)
    if faults:
        raise BadInput(faults)
    return tuple(rows), left_out(names, COLUMNS)


def _row(path: Path, line: int, given: Mapping[str, str]) -> tuple[KernelRow | None, list[Fault]]:
    faults = []
    counts: dict[str, int] = {}
    for name in _COUNTS:
        if text := given.get(name, ""):
            found = whole(text, least=0, most=1) if name == "causal" else whole(text, least=1, most=_LARGEST)
            if isinstance(found, Misread):
                key = f"line {line}, column {name}"
                faults.append(Fault(file=str(path), key=key, value=text, rule=found.rule, nearest=found.nearest))
            else:
                counts[name] = found
    value = number(given["value"])
    if value is None or value <= 0:
        rule = "must be a finite number above 0"
        faults.append(Fault(file=str(path), key=f"line {line}, column value", value=given["value"], rule=rule))
    if faults or value is None:
        return None, faults
    texts = {name: given.get(name, "") for name in _TEXTS}
    passes = texts.pop("pass")
    return KernelRow(line=line, **texts, passes=passes, value=value, counts=counts), []
