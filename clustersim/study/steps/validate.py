"""Measured training steps beside their predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from clustersim.faults import BadInput, Fault
from clustersim.readers import step_rows
from clustersim.readers.step_rows import StepRow
from clustersim.study.row_kind import RowKind
from clustersim.study.steps.configuration import with_configurations
from clustersim.study.steps.interval import with_intervals
from clustersim.study.steps.layout import MEMORY_METRICS
from clustersim.study.steps.left_out import without_own_source
from clustersim.study.steps.metric import in_metric
from clustersim.study.steps.predict import StepOutcome, predict
from clustersim.study.steps.step_job import MeasuredStep
from clustersim.study.steps.timing import StepTime
from clustersim.study.validated_row import ValidatedRow

__all__ = ["STEPS"]

_ASSUMED = 0.5
"""Part of the op time that assumed numbers may make up before a row counts as out of the calibrated domain."""

_LABELS = (
    "source",
    "family",
    "profile",
    "topology",
    "hardware",
    "model",
    "precision",
    "group",
    "confidence",
    "how_obtained",
    "year",
    "gpus",
    "tp",
    "pp",
    "cp",
    "ep",
    "recompute",
    "fits",
    "network",
)
"""Columns of the file, and what the row was mapped to."""

_MEANING = {
    "card": "a card stands for the hardware as published",
    "job": "a card of the library is the job of the source's scripts",
    "offload": "a policy stands for the words, as of the row's year, with what its source says of pinning and binding",
    "profile": "a software profile stands for what the source ran",
    "recipe": "what the row leaves out is from the recipe, code or other table that its source names",
    "layout": "neither degrees nor a recipe are published: the fewest GPUs a replica that hold it",
    "adapters": "which matrices have adapters, and of what rank, is not published",
    "model": "a card, or a kind of model, gives what the row's columns do not",
    "network": "the network, or how many ports it has, is not certain; what is not told is the card's",
    "precision": "the number format is not published, or its name means more than one",
    "batch": "the micro-batch is not published, the whole batch is one, or it is no whole number a replica",
    "recompute": "what is recomputed is not published, or not exactly what is simulated",
    "sharding": "how the optimizer state is split is not published, or not exactly what is simulated",
    "schedule": "chunks of the pipeline are not published",
    "overlap": "the row says that overlap was off",
    "gpus": "some GPUs of the row are not used",
    "memory": "more memory is held than there is; the time is that without the limit",
    "note": "what the simulation itself splits, pads or leaves out",
}


def _check(path: Path, leave_out: str | None) -> list[Fault]:
    del leave_out
    try:
        step_rows.read(path)
    except BadInput as error:
        return list(error.faults)
    return []


def _families(path: Path) -> list[str]:
    return list(dict.fromkeys(_family(path.stem, row) for row in step_rows.read(path)[0]))


def _family(stem: str, row: StepRow) -> str:
    """The row's own family, else that of its file and source."""
    return row.family or f"{stem}:{row.source}"


def _predict(
    path: Path,
    *,
    leave_out: str | None,
    family: str | None,
    processes: int,
    progress: Callable[[float], None] | None,
) -> tuple[tuple[ValidatedRow, ...], tuple[str, ...]]:
    """Rows that have one job are simulated once."""
    rows, notes = step_rows.read(path)
    rows = with_configurations(path, rows)
    rows = tuple(row for row in rows if family in (None, _family(path.stem, row)))
    outcomes = predict(rows, processes=processes, progress=progress)
    found = with_intervals([_validated(path.stem, outcome) for outcome in outcomes])
    if leave_out is not None:
        others = without_own_source(path, outcomes, processes=processes, progress=progress)
        found = tuple(replace(row, left_out_error=_error(other)) for row, other in zip(found, others, strict=True))
    return found, tuple(notes)


def _error(outcome: StepOutcome) -> float | None:
    """predicted/measured - 1; None where it was refused."""
    if outcome.measured is None or outcome.step is None:
        return None
    return in_metric(outcome.measured, outcome.step) / outcome.row.value - 1


def _totals(rows: Sequence[ValidatedRow]) -> dict[str, Sequence[ValidatedRow]]:
    """All rows; those that were read and are not of low confidence; of these, those in the calibrated domain."""
    sure = [r for r in rows if r.labels.get("how_obtained") != "memory" and r.labels["confidence"] != "low"]
    return {
        "all rows": rows,
        "read, of high or medium confidence": sure,
        "of these in the calibrated domain": [row for row in sure if row.in_domain or row.status == "refused"],
    }


def _validated(stem: str, outcome: StepOutcome) -> ValidatedRow:
    row, measured, step = outcome.row, outcome.measured, outcome.step
    told = measured is not None and step is not None
    return ValidatedRow(
        id=row.id or f"line {row.line}",
        line=row.line,
        family=_family(stem, row),
        source=row.source,
        metric=row.metric,
        unit=row.unit,
        measured=row.value,
        predicted=in_metric(measured, step) if measured is not None and step is not None else None,
        reason=outcome.reason,
        detail=outcome.detail,
        in_domain=measured is not None and step is not None and _in_domain(measured, step),
        coverage=step.coverage if step is not None else {},
        assumptions=tuple(_assumptions(measured, step)) if told else (),
        spread=step.spread if step is not None and row.metric not in MEMORY_METRICS else None,
        labels=_labels(row, measured, step),
    )


def _in_domain(measured: MeasuredStep, step: StepTime) -> bool:
    """Whether network, layout and batch are known and most of the time rests on measured devices."""
    return measured.known_network and measured.published and step.coverage.get("assumed", 0.0) <= _ASSUMED


def _assumptions(measured: MeasuredStep | None, step: StepTime | None) -> Iterator[str]:
    if measured is None or step is None:
        return
    yield from measured.assumptions
    if not step.fits:
        yield f"memory: {step.peak_bytes / 2**30:.1f} GiB are held, more than there is"
    for note in step.notes:
        yield f"note: {note}"
    if step.simulated < measured.job.num_micro_batches:
        total = measured.job.num_micro_batches
        yield f"line: {step.simulated} of {total} micro-batches simulated, the rest on their line"


def _labels(row: StepRow, measured: MeasuredStep | None, step: StepTime | None) -> dict[str, str]:
    counts = ("year", "gpus", "tp", "pp", "vpp", "dp", "cp", "ep", "micro_batch", "global_batch", "seq_len")
    texts = ("hardware", "model", "precision", "group", "confidence", "how_obtained", "recompute", "sharding")
    labels = {name: getattr(row, name) for name in texts}
    labels |= {name: str(getattr(row, name) or "") for name in counts}
    layout = ("tp", "pp", "vpp", "dp", "cp", "ep", "micro_batch", "recompute", "sharding", "zero_stage")
    labels["layout"] = " ".join(str(getattr(row, name)) for name in layout)
    if measured is None:
        return labels | {"profile": "none", "topology": "no card", "network": "not known", "fits": ""}
    known = "not used" if measured.job.machine.nodes == 1 else "known" if measured.known_network else "not known"
    labels |= {"profile": measured.profile.name, "topology": measured.job.machine.card, "network": known}
    labels["fits"] = "" if step is None else str(step.fits).lower()
    if step is not None:
        shares = {name: value / (sum(step.parts_s.values()) or 1) for name, value in step.parts_s.items()}
        labels["parts"] = " ".join(f"{name}={share:.3f}" for name, share in shares.items() if share >= 0.0005)
    return labels


STEPS = RowKind(
    name="steps",
    labels=_LABELS,
    tables=("family", "source", "topology"),
    titles={},
    meaning=_MEANING,
    leave_out=("source",),
    detect=step_rows.detect,
    check=_check,
    families=_families,
    predict=_predict,
    totals=_totals,
)
"""Training steps in the metric that their source publishes, simulated on a cluster of the library."""
