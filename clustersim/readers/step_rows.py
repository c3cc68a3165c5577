"""A CSV of measured training steps -> rows to compare with predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from clustersim.faults import BadInput, Fault
from clustersim.readers.csv_number import Misread, number, whole
from clustersim.readers.csv_records import header, id_twice, left_out, missing, records

__all__ = ["COLUMNS", "REQUIRED", "StepRow", "detect", "read"]

REQUIRED = ("source", "hardware", "gpus", "metric", "value", "unit")
"""Columns without which no row can be compared; each row must have a source, hardware, metric, value and unit."""

_UNREAD = (
    "url_or_repo_path",
    "shape_from",
    "params_b",
    "iteration_time_s",
    "iteration_time_from",
    "tokens_per_s_per_gpu",
    "tokens_from",
)
_LARGEST = 2**53
_YEARS = (2000, 2100)
_RANGES = {"zero_stage": (0, 3), "gated_mlp": (0, 1), "year": _YEARS}
"""Least and most of a count; others go from 1 on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRow:
    """One measurement, as published. A text that is not there is empty, a count None.

    Parameters
    ----------
    line : int
        of the file
    id, group, family, source : str
        name of the row, of the sweep that it belongs to, what its error is told with, where it was published
    hardware, interconnect, model, sharding, recompute, precision, offload, sequence_parallel, notes : str
        in the source's words
    metric, unit, flops_convention : str
        what ``value`` is, and which FLOP a rate counts
    how_obtained, confidence : str
        whether the number was read or recalled, and how sure it is
    value : float
        the published number
    year, nodes, gpus : int, optional
    layers, hidden, heads, kv_heads, ffn, gated_mlp, vocab, experts, topk, moe_ffn : int, optional
        shape of the model; ``gated_mlp`` is 0 or 1
    seq_len : int, optional
        tokens of a sequence
    tp, pp, vpp, dp, cp, ep, zero_stage : int, optional
    micro_batch, global_batch, grad_accum : int, optional
        sequences of a pass and of a step; micro-batches of a step and replica
    """

    line: int
    id: str = ""
    group: str = ""
    family: str = ""
    source: str = ""
    hardware: str = ""
    interconnect: str = ""
    model: str = ""
    sharding: str = ""
    recompute: str = ""
    precision: str = ""
    offload: str = ""
    sequence_parallel: str = ""
    notes: str = ""
    metric: str = ""
    unit: str = ""
    flops_convention: str = ""
    how_obtained: str = ""
    confidence: str = ""
    value: float
    year: int | None = None
    nodes: int | None = None
    gpus: int | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    ffn: int | None = None
    gated_mlp: int | None = None
    vocab: int | None = None
    experts: int | None = None
    topk: int | None = None
    moe_ffn: int | None = None
    seq_len: int | None = None
    tp: int | None = None
    pp: int | None = None
    vpp: int | None = None
    dp: int | None = None
    cp: int | None = None
    ep: int | None = None
    zero_stage: int | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    grad_accum: int | None = None


_COUNTS = tuple(field.name for field in fields(StepRow) if field.type == "int | None")
_TEXTS = tuple(field.name for field in fields(StepRow) if field.type == "str")

COLUMNS = (*_TEXTS, *_COUNTS, "value", *_UNREAD)
"""Every column that has a meaning here; those of the other units and of where a shape is from are not read."""


def detect(path: str | Path) -> bool:
    """Whether the file begins with a header that has every column of :data:`REQUIRED`."""
    return {*REQUIRED} <= {*header(path)}


def read(path: str | Path) -> tuple[tuple[StepRow, ...], list[str]]:
    """Read measurements.

    Parameters
    ----------
    path : str or Path
        a CSV with a header; an empty field is a value that is not known

    Returns
    -------
    rows : tuple[StepRow, ...]
    notes : list[str]
        columns that are not known here

    Raises
    ------
    BadInput
        with every missing column and every bad value: line, column, value, rule
    """
    path = Path(path)
    names, found = records(path)
    absent = missing(path, names, REQUIRED)
    faults = [*absent]
    first: dict[str, int] = {}
    rows = []
    for line, given in found:
        wrong = [replace(fault, file=str(path), key=f"line {line}, column {fault.key}") for fault in _faults(given)]
        wrong += id_twice(path, line, given.get("id", ""), first)
        faults += wrong if not absent else []
        if not faults:
            rows.append(_row(line, given))
    if faults:
        raise BadInput(faults)
    return tuple(rows), left_out(names, COLUMNS)


def _faults(given: Mapping[str, str]) -> Iterator[Fault]:
    """What is wrong with the fields of a row, by column."""
    for name in ("source", "hardware", "metric", "value", "unit"):
        if not given.get(name):
            yield Fault(key=name, value=given.get(name), rule="must be given")
    value = number(given.get("value", ""))
    if given.get("value") and (value is None or value <= 0):
        yield Fault(key="value", value=given["value"], rule="must be a finite number above 0")
    for name in _COUNTS:
        found = _count(name, given[name]) if given.get(name) else None
        if isinstance(found, Misread):
            yield Fault(key=name, value=given[name], rule=found.rule, nearest=found.nearest)


def _count(name: str, text: str) -> int | Misread:
    least, most = _RANGES.get(name, (1, _LARGEST))
    return whole(text, least=least, most=most)


def _row(line: int, given: Mapping[str, str]) -> StepRow:
    counts = {name: _count(name, given[name]) for name in _COUNTS if given.get(name)}
    texts = {name: given.get(name, "") for name in _TEXTS}
    return StepRow(line=line, value=float(given["value"]), **texts, **counts)  # type: ignore[arg-type]
