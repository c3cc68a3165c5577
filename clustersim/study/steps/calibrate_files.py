"""Rows that ``clustersim validate --out`` wrote -> what whole steps miss: what ``clustersim calibrate steps`` does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustersim.analysis.step_residual import StepResidual, share_of
from clustersim.faults import BadInput, Fault, collect
from clustersim.readers.csv_records import records
from clustersim.study.steps.interval import learn, num_origins, with_intervals
from clustersim.study.validated_row import ValidatedRow

__all__ = ["CalibratedSteps", "calibrate_step_files"]

_COLUMNS = ("source", "metric", "measured", "predicted", "spread")


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibratedSteps:
    """The outcome.

    Parameters
    ----------
    residual : StepResidual
    num_rows, num_sources : int
        that count: predicted times and rates, read and of no low confidence; releases of one source are one
    inside : float
        fraction of all predicted rows that are in intervals made from the other sources
    text : str
        content of the card
    """

    residual: StepResidual
    num_rows: int
    num_sources: int
    inside: float
    text: str


def calibrate_step_files(paths: Sequence[Path], *, name: str = "steps") -> CalibratedSteps:
    """Learn what simulations of whole steps miss beside kernels and collectives.

    Parameters
    ----------
    paths : sequence of Path
        ``rows.csv`` of folders that ``clustersim validate --out`` wrote
    name : str
        of the card

    Raises
    ------
    BadInput
        with every fault of the files; and when their rows are of fewer than three sources
    """
    rows: list[ValidatedRow] = []
    faults: list[Fault] = []
    for path in paths:
        with collect(faults):
            rows += _rows(path)
    if faults:
        raise BadInput(faults)
    residual = learn(rows, name)
    if residual is None:
        rule = "must have predicted rows of three sources at least"
        raise BadInput([Fault(key="files", value=[path.name for path in paths], rule=rule)])
    told = [row.inside for row in with_intervals(rows) if row.inside is not None]
    num_rows, num_sources = num_origins(rows)
    inside = sum(told) / len(told)
    return CalibratedSteps(
        residual=residual,
        num_rows=num_rows,
        num_sources=num_sources,
        inside=inside,
        text=_text(residual, num_rows, num_sources, inside),
    )


def _rows(path: Path) -> Iterator[ValidatedRow]:
    names, found = records(path)
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        rule = "must be there: rows.csv of clustersim validate --out on measured steps"
        raise BadInput([Fault(file=str(path), key=f"column {name}", value=None, rule=rule) for name in missing])
    faults = [
        Fault(file=str(path), key=f"line {line}, column {name}", value=fields[name], rule="must be a finite number")
        for line, fields in found
        for name in ("measured", "predicted", "spread")
        if fields[name] and not math.isfinite(_number(fields[name]))
    ]
    if faults:
        raise BadInput(faults)
    for line, fields in found:
        measured, predicted, spread = (
            _number(fields[name]) if fields[name] else None for name in ("measured", "predicted", "spread")
        )
        yield ValidatedRow(
            id=fields.get("id", ""),
            line=line,
            family=fields.get("family", ""),
            source=fields["source"],
            metric=fields["metric"],
            unit=fields.get("unit", ""),
            measured=measured,
            predicted=predicted,
            spread=spread,
            labels=_labels(fields),
        )


def _labels(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: fields.get(name, "") for name in ("how_obtained", "confidence")}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _text(residual: StepResidual, num_rows: int, num_sources: int, inside: float) -> str:
    over = f"{num_rows} steps of {num_sources} sources, all sources weighing the same"
    centre = (
        f"measured: median of {over}; sources that are left out come nearer to it than to zero"
        if residual.centre
        else "assumed: none, sources that are left out come no nearer to their median than to zero"
    )
    spread = (
        f"measured: the least that has {share_of(num_sources):.0%} of {over}, in their intervals, so that 80% of yet "
        f"another source are; with each source left out in turn {inside:.0%} of rows are"
    )
    return "\n".join(
        [
            'description = "What simulated steps miss beside kernels and collectives"',
            "",
            f"centre = {residual.centre:.2g}",
            f"spread = {residual.spread:.2g}",
            "",
            "[sources]",
            f'centre = "{centre}"',
            f'spread = "{spread}"',
            "",
        ]
    )
