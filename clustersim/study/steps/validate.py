"""A file of measured training steps -> predictions beside the measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.readers import step_rows
from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.metric import in_metric
from clustersim.study.steps.predict import StepOutcome, predict
from clustersim.study.steps.report import StepValidation
from clustersim.study.steps.step_job import MeasuredStep
from clustersim.study.steps.timing import StepTime
from clustersim.study.validated_row import ValidatedRow

__all__ = ["family_of", "read_rows", "unknown_family", "validate_steps"]

_ASSUMED = 0.5
"""Part of the op time that assumed numbers may make up before a row counts as out of the calibrated domain."""


def validate_steps(
    path: str | Path,
    *,
    family: str | None = None,
    processes: int = 1,
    progress: Callable[[float], None] | None = None,
) -> StepValidation:
    """Predict every row of a file of measured steps.

    Parameters
    ----------
    path : str or Path
        a CSV as :func:`clustersim.readers.step_rows.read` takes it
    family : str, optional
        rows of this one only
    processes : int
        that simulate beside each other
    progress : callable, optional
        called with the fraction of the jobs that are done

    Raises
    ------
    BadInput
        with every fault of the file, and when it has no such family
    """
    rows, notes = read_rows(path, family)
    stem = Path(path).stem
    outcomes = predict(rows, processes=processes, progress=progress)
    return StepValidation(
        file=str(path), rows=tuple(_validated(stem, outcome) for outcome in outcomes), notes=tuple(notes)
    )


def read_rows(path: str | Path, family: str | None) -> tuple[Sequence[StepRow], list[str]]:
    """Rows of a file, of one family where it is asked for.

    Raises
    ------
    BadInput
    """
    rows, notes = step_rows.read(path)
    if family is None:
        return rows, notes
    stem = Path(path).stem
    names = list(dict.fromkeys(family_of(stem, row) for row in rows))
    if family not in names:
        raise BadInput([unknown_family(path, family, names)])
    return [row for row in rows if family_of(stem, row) == family], notes


def unknown_family(path: str | Path, family: str, names: Sequence[str]) -> Fault:
    """A family that a file does not have."""
    rule = f"must be a family of {Path(path).name}: {', '.join(names)}"
    return Fault(key="family", value=family, rule=rule, nearest=nearest_name(family, names))


def family_of(stem: str, row: StepRow) -> str:
    """The row's own family, else that of its file and source."""
    return row.family or f"{stem}:{row.source}"


def _validated(stem: str, outcome: StepOutcome) -> ValidatedRow:
    row, measured, step = outcome.row, outcome.measured, outcome.step
    told = measured is not None and step is not None
    return ValidatedRow(
        id=row.id or f"line {row.line}",
        line=row.line,
        family=family_of(stem, row),
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
        labels=_labels(row, measured, step),
    )


def _in_domain(measured: MeasuredStep, step: StepTime) -> bool:
    """Whether the network is known and most of the time rests on measured devices."""
    return measured.known_network and step.coverage.get("assumed", 0.0) <= _ASSUMED


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
