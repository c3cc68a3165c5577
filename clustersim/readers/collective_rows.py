"""A CSV of measured collectives -> rows to compare with or to calibrate from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clustersim.collective.bound import KINDS
from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.readers import csv_records
from clustersim.readers.csv_number import Misread, number, whole

__all__ = ["COLUMNS", "CollectiveRow", "Unused", "detect", "read"]

_REQUIRED = ("hardware", "gpus", "collective", "size_bytes", "time_us")
_TEXTS = (
    "id",
    "group",
    "source",
    "family",
    "hardware",
    "intra_link",
    "inter_link",
    "algo",
    "nccl_version",
    "confidence",
    "notes",
)
_COUNTS = ("nodes", "gpus", "gpus_per_node", "size_bytes")
_NUMBERS = ("time_us", "algbw_GBps", "busbw_GBps")
_UNREAD = ("url_or_repo_path", "year", "published_columns", "size_definition", "how_obtained")

COLUMNS = (*_TEXTS, "collective", *_COUNTS, *_NUMBERS, *_UNREAD)
"""Every column that has a meaning here; those that only say where a number is from are not read."""

_LARGEST = 2**63 - 1
_MODELLED = {kind.replace("_", ""): kind for kind in KINDS}


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveRow:
    """One measurement.

    Parameters
    ----------
    line : int
        of the file
    id, group, source : str
        name of the row, of the sweep that it belongs to, of where it was published
    family : str
        that its error is told with; empty where rows are told by their source
    hardware, intra_link, inter_link : str
        as published: GPU, links inside a node, links between nodes
    algo, nccl_version : str
        as published
    confidence : str
        ``high``, ``medium``, ``low``, or empty
    notes : str
        as published
    collective : str
        kind, as in :data:`clustersim.collective.bound.KINDS`
    num_ranks : int
    num_nodes, ranks_per_node : int, optional
        where they are given
    nbytes : int
        payload as nccl-tests counts it [B]
    time_us : float
        [us]
    algbw, busbw : float, optional
        as published [GB/s]
    """

    line: int
    id: str
    group: str
    source: str
    hardware: str
    intra_link: str
    inter_link: str
    algo: str
    nccl_version: str
    confidence: str
    notes: str
    collective: str
    num_ranks: int
    num_nodes: int | None
    ranks_per_node: int | None
    nbytes: int
    time_us: float
    algbw: float | None
    busbw: float | None
    family: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unused:
    """A row that is legal and cannot be compared with a prediction.

    Parameters
    ----------
    line : int
        of the file
    id : str
    reasons : tuple[str, ...]
        one or more
    given : Mapping[str, str]
        the row as it stands there, by column
    """

    line: int
    id: str
    reasons: tuple[str, ...]
    given: Mapping[str, str] = field(default_factory=dict)


def detect(path: str | Path) -> bool:
    """Whether the file begins with a header that has every required column."""
    return {*_REQUIRED} <= {*csv_records.header(path)}


def read(path: str | Path) -> tuple[tuple[CollectiveRow, ...], tuple[Unused, ...], list[str]]:
    """Read measurements.

    Parameters
    ----------
    path : str or Path
        a CSV with a header; an empty field is a value that is not known

    Returns
    -------
    rows : tuple[CollectiveRow, ...]
    unused : tuple[Unused, ...]
        rows kept aside, with the reasons: no size, no time, no number of ranks, one rank, or a collective that is not
        modelled
    notes : list[str]
        columns that are not known here

    Raises
    ------
    BadInput
        with every missing column and every bad value: line, column, value, rule
    """
    path = Path(path)
    header, records = csv_records.lines(path)
    faults = csv_records.missing(path, header, _REQUIRED)
    faults += csv_records.named_twice(path, header)
    rows: list[CollectiveRow] = []
    unused: list[Unused] = []
    first: dict[str, int] = {}
    for line, fields in records:
        if len(fields) != len(header):
            rule = f"fields: there must be one for each of the {len(header)} columns"
            faults.append(Fault(file=str(path), key=f"line {line}", value=len(fields), rule=rule))
            continue
        given = dict(zip(header, fields, strict=True))
        numbers, wrong = _numbers(path, line, given)
        faults += wrong
        name = given.get("id", "")
        faults += csv_records.id_twice(path, line, name, first)
        reasons = tuple(_reasons(given, numbers))
        if wrong or faults:
            continue
        if reasons:
            unused.append(Unused(line=line, id=name, reasons=reasons, given=given))
        else:
            rows.append(_row(line, given, numbers))
    if not records and not faults:
        faults.append(Fault(file=str(path), key="file", value=path.name, rule="must have rows below its header"))
    if faults:
        raise BadInput(faults)
    return tuple(rows), tuple(unused), csv_records.left_out(header, COLUMNS)


def _numbers(path: Path, line: int, given: Mapping[str, str]) -> tuple[dict[str, float], list[Fault]]:
    """Numbers by column, those that are given, and what is wrong with the others."""
    numbers: dict[str, float] = {}
    faults = []
    for name in (*_COUNTS, *_NUMBERS):
        text = given.get(name, "")
        if not text:
            continue
        found = whole(text, least=0 if name == "size_bytes" else 1, most=_LARGEST) if name in _COUNTS else number(text)
        if isinstance(found, Misread):
            wrong = found
        elif found is None or found < 0 or (name == "time_us" and not found):
            wrong = Misread(rule=f"must be a finite number{' above 0' if name == 'time_us' else ', zero or above'}")
        else:
            numbers[name] = found
            continue
        key = f"line {line}, column {name}"
        faults.append(Fault(file=str(path), key=key, value=text, rule=wrong.rule, nearest=wrong.nearest))
    kind = given.get("collective", "")
    if "collective" in given and not kind:
        rule, near = "must be given", "all_reduce"
        faults.append(Fault(file=str(path), key=f"line {line}, column collective", value=kind, rule=rule, nearest=near))
    return numbers, faults


def _reasons(given: Mapping[str, str], numbers: Mapping[str, float]) -> Iterator[str]:
    """Why a row cannot be compared."""
    kind = given.get("collective", "")
    if _kind(kind) is None:
        near = nearest_name(kind, KINDS)
        yield f"{kind} is not a collective that is modelled" + (f"; nearest: {near}" if near else "")
    if not numbers.get("size_bytes"):
        yield "no size"
    if "time_us" not in numbers:
        yield "no time"
    if "gpus" not in numbers:
        yield "no number of ranks"
    elif numbers["gpus"] == 1:
        yield "one rank: no link is used"


def _kind(text: str) -> str | None:
    return _MODELLED.get(text.lower().replace("_", "").replace("-", ""))


def _row(line: int, given: Mapping[str, str], numbers: Mapping[str, float]) -> CollectiveRow:
    count = {name: int(numbers[name]) for name in _COUNTS if name in numbers}
    return CollectiveRow(
        line=line,
        **{name: given.get(name, "") for name in _TEXTS},
        collective=_kind(given["collective"]) or "",
        num_ranks=count["gpus"],
        num_nodes=count.get("nodes"),
        ranks_per_node=count.get("gpus_per_node"),
        nbytes=count["size_bytes"],
        time_us=numbers["time_us"],
        algbw=numbers.get("algbw_GBps"),
        busbw=numbers.get("busbw_GBps"),
    )
