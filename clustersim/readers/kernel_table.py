"""A user's own table of measured kernels, CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.kernel import Kernel, KernelKind
from clustersim.hardware.kernel_table import KernelTable, TimedKernel
from clustersim.hardware.memory_model import FORMS
from clustersim.readers.csv_number import Misread, number, whole

__all__ = ["COLUMNS", "read"]

_WIDTH = {"fp32": 4.0, "tf32": 4.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "mxfp8": 33 / 32, "nvfp4": 9 / 16}

COLUMNS: Mapping[str, str] = {
    "device": "name of the GPU's card",
    "kind": "gemm, attention or memory",
    "dtype": ", ".join(_WIDTH),
    "m": "rows of the result; queries of a sequence",
    "n": "columns of the result; keys that a query meets at most",
    "k": "length of the sums; columns of a head",
    "batch": "products of one launch; heads of all sequences; 1 when empty",
    "form": f"which kernel of its kind: of attention flash-3 and the like, of a pass over memory {', '.join(FORMS)}; "
    "empty for the usual one",
    "backward": "1 for the gradients of attention; 0 when empty",
    "causal": "1 where attention sees no later token; 0 when empty",
    "dropout": "1 where attention drops weights; 0 when empty",
    "nbytes": "read and written, of a pass over memory [B]; of others counted from the shape when empty",
    "flops": "operations [FLOP]; counted from the shape when empty, none of a pass over memory",
    "time_us": "from one launch to the next [us]",
    "share": "of op time; not read, so that what a run misses can be filled in",
    "provenance": "not read either",
}
"""Columns and what stands in them. ``device``, ``kind``, ``dtype`` and ``time_us`` must be there."""

_REQUIRED = ("device", "kind", "dtype", "time_us")
_COUNTS = ("m", "n", "k", "batch", "nbytes", "flops")
_FLAGS = ("backward", "causal", "dropout")
_NO, _YES = ("0", "0.0", "False"), ("1", "1.0", "True")

_LARGEST = 10**18
"""Of a count: beyond it no kernel is, and 64 bits end soon after."""

_LONGEST_US = 10**9
"""Of a time [us]: a thousand seconds, so that a step of many such kernels can be counted in nanoseconds."""


class _Wrong(NamedTuple):
    """What is wrong with one field of a row."""

    column: str
    value: str | None
    rule: str
    nearest: object = None


def read(path: str | Path) -> KernelTable:
    """Read a table.

    Parameters
    ----------
    path : str or Path
        a file whose name ends in ``.csv``, or in ``.parquet`` (which needs pyarrow), with columns of :data:`COLUMNS`

    Raises
    ------
    BadInput
        with every unknown and missing column and every bad value: row, column, value, rule
    """
    path = Path(path)
    header, records = _parquet(path) if path.suffix == ".parquet" else _csv(path)
    faults = [
        Fault(file=str(path), key=f"column {name}", value=None, rule="must be there")
        for name in _REQUIRED
        if name not in header
    ]
    for name in header:
        if name not in COLUMNS:
            rule, near = f"is not a column here; legal: {', '.join(COLUMNS)}", nearest_name(name, COLUMNS)
            faults.append(Fault(file=str(path), key="columns", value=name, rule=rule, nearest=near))
    rows = []
    for position, fields in enumerate(() if faults else records, start=1):
        row, wrong = _row(path, position, fields)
        faults += wrong
        rows += row
    if not faults and not rows:
        faults.append(Fault(file=str(path), key="file", value=path.name, rule="must have rows"))
    if faults:
        raise BadInput(faults)
    return KernelTable(rows=tuple(rows))


def _csv(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True, restkey="", restval="")
            return [name.strip() for name in reader.fieldnames or ()], list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        rule = f"must be a readable CSV file: {getattr(error, 'strerror', None) or error}"
        raise BadInput([Fault(file=str(path), key="file", value=str(path), rule=rule)]) from error


def _parquet(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        rule = "needs pyarrow, which is not installed; a CSV does not"
        raise BadInput([Fault(file=str(path), key="file", value=path.name, rule=rule)]) from None
    try:
        table = pq.read_table(path)
    except (OSError, ValueError) as error:
        rule = f"must be a readable Parquet file: {error}"
        raise BadInput([Fault(file=str(path), key="file", value=str(path), rule=rule)]) from error
    records: list[dict[str, Any]] = table.to_pylist()
    return list(table.column_names), [
        {name: "" if value is None else str(value) for name, value in record.items()} for record in records
    ]


def _row(path: Path, position: int, fields: Mapping[str, str]) -> tuple[list[TimedKernel], list[Fault]]:
    given = {name.strip(): str(text).strip() for name, text in fields.items() if name and str(text).strip()}
    faults = [
        Fault(
            file=str(path),
            key=f"row {position}, column {wrong.column}",
            value=wrong.value,
            rule=wrong.rule,
            nearest=wrong.nearest,
        )
        for wrong in _faults(given)
    ]
    if surplus := [str(text) for text in fields.get("", ())]:
        rule = "stands beyond the last column"
        faults.append(Fault(file=str(path), key=f"row {position}", value=",".join(surplus), rule=rule))
    if faults:
        return [], faults
    counts = {name: int(float(given[name])) for name in _COUNTS if name in given}
    kernel = _kernel(given, counts)
    return [TimedKernel(device=given["device"], kernel=kernel, seconds=float(given["time_us"]) / 1e6)], []


def _faults(given: Mapping[str, str]) -> Iterator[_Wrong]:
    for name in _REQUIRED:
        if name not in given:
            yield _Wrong(name, None, "must be given")
    kind = given.get("kind", "")
    for name, names in (("kind", get_args(KernelKind)), ("dtype", tuple(_WIDTH))):
        if given.get(name, names[0]) not in names:
            yield _Wrong(name, given[name], f"must be one of {', '.join(names)}", nearest_name(given[name], names))
    form = given.get("form", "")
    if kind == "memory" and form and form not in FORMS:
        yield _Wrong("form", form, f"must be one of {', '.join(FORMS)}, or empty", nearest_name(form, FORMS))
    for name in _COUNTS:
        found = whole(given.get(name, "1"), least=1, most=_LARGEST)
        if isinstance(found, Misread):
            yield _Wrong(name, given[name], found.rule, found.nearest)
    for name in _FLAGS:
        if given.get(name, "0") not in (*_NO, *_YES):
            yield _Wrong(name, given[name], "must be 0 or 1")
    time = number(given.get("time_us", "1"))
    if time is None or not 0 < time <= _LONGEST_US:
        near = _LONGEST_US if time is not None and time > 0 else None
        yield _Wrong("time_us", given["time_us"], f"must be a number above 0 and up to {_LONGEST_US:.0e}", near)
    wanted = ("nbytes",) if kind == "memory" else ("m", "n", "k")
    for name in wanted:
        if name not in given:
            yield _Wrong(name, None, f"must be given for {kind or 'a kernel'}")


def _kernel(given: Mapping[str, str], counts: Mapping[str, int]) -> Kernel:
    kind: KernelKind = given["kind"]  # type: ignore[assignment]
    dtype, form = given["dtype"], given.get("form", "")
    if kind == "memory":
        form = "" if form == FORMS[0] else form
        return Kernel(kind=kind, dtype=dtype, flops=counts.get("flops", 0), nbytes=counts["nbytes"], form=form)
    m, n, k, batch = (counts.get(name, 1) for name in ("m", "n", "k", "batch"))
    backward, causal, dropout = (given.get(name, "0") in _YES for name in _FLAGS)
    width = _WIDTH[dtype]
    if kind == "gemm":
        flops, nbytes = 2 * batch * m * n * k, round(batch * (width * (m * k + k * n) + max(width, 2) * m * n))
    else:
        flops = (10 if backward else 4) * batch * m * n * k // (1 + causal)
        nbytes = round(width * (1 + backward) * 2 * batch * (m + n) * k)
    return Kernel(
        kind=kind,
        dtype=dtype,
        flops=counts.get("flops", flops),
        nbytes=counts.get("nbytes", nbytes),
        m=m,
        n=n,
        k=k,
        batch=batch,
        form=form,
        backward=backward,
        dropout=dropout,
    )
