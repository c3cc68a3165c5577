"""All rows of a file: placed, their different jobs simulated once each over a process pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing import get_context

from clustersim.faults import BadInput
from clustersim.garbage import uncollected
from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.metric import metric_faults
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.refusals import refusals
from clustersim.study.steps.smallest import placed
from clustersim.study.steps.step_job import MeasuredStep, StepJob
from clustersim.study.steps.timing import StepTime, step_time
from clustersim.trace.result import Result

__all__ = ["StepOutcome", "predict"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepOutcome:
    """What became of a row.

    Parameters
    ----------
    row : StepRow
    measured : MeasuredStep, optional
        None where no job stands for it
    step : StepTime, optional
        None where it was refused
    reason, detail : str
        why it was refused, and all that is wrong with it; empty where it was not
    """

    row: StepRow
    measured: MeasuredStep | None = None
    step: StepTime | None = None
    reason: str = ""
    detail: str = ""


def predict(
    rows: Sequence[StepRow],
    *,
    processes: int = 1,
    progress: Callable[[float], None] | None = None,
) -> list[StepOutcome]:
    """Place and simulate rows.

    Parameters
    ----------
    rows : Sequence[StepRow]
    processes : int
        that simulate beside each other
    progress : callable, optional
        called with the fraction of the jobs that are done
    """
    with nullcontext() if processes == 1 else ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        # rows that stand together are often alike: what a process has loaded for one serves the next
        outcomes = list(map(_placed, rows) if pool is None else pool.map(_placed, rows, chunksize=16))
        jobs = list(dict.fromkeys(outcome.measured.job for outcome in outcomes if outcome.measured))
        # the longest first, so that no process is left alone with one at the end
        jobs.sort(key=lambda job: -job.plan.pp * job.model.num_layers * min(job.num_micro_batches, 8 * job.plan.pp))
        alike: dict[StepJob, list[StepJob]] = {}
        for job in jobs:
            alike.setdefault(job.with_micro_batches(1), []).append(job)
        groups = list(alike.values())
        found: dict[StepJob, StepTime | RefusedError] = {}
        for group, times in zip(groups, map(_timed, groups) if pool is None else pool.map(_timed, groups), strict=True):
            for job, time in zip(group, times, strict=True):
                found[job] = time if isinstance(time, StepTime) else RefusedError(*time)
            if progress is not None:
                progress(len(found) / len(jobs))
    return [
        outcome if outcome.measured is None else _told(outcome, found[outcome.measured.job]) for outcome in outcomes
    ]


def _placed(row: StepRow) -> StepOutcome:
    try:
        metric_faults(row)
        return StepOutcome(row=row, measured=placed(row))
    except RefusedError as refusal:
        details = dict.fromkeys((refusal.detail, *(other.detail for other in refusals(row))))
        return StepOutcome(row=row, reason=refusal.reason, detail="; ".join(details))


def _told(outcome: StepOutcome, time: StepTime | RefusedError) -> StepOutcome:
    row, measured = outcome.row, outcome.measured
    if isinstance(time, RefusedError):
        return StepOutcome(row=row, measured=measured, reason=time.reason, detail=time.detail)
    return StepOutcome(row=row, measured=measured, step=time)


@uncollected()
def _timed(alike: Sequence[StepJob]) -> list[StepTime | tuple[str, str]]:
    """Times of jobs that differ by their batch only, so that their short batches are simulated once."""
    ran: dict[int, Result] = {}
    return [_time_of(job, ran) for job in alike]


def _time_of(job: StepJob, ran: dict[int, Result]) -> StepTime | tuple[str, str]:
    """The time, or the word and the detail of a refusal: both go from one process to another."""
    try:
        return step_time(job, ran)
    except BadInput as refusal:
        told = "; ".join(f"{fault.key} {fault.value} {fault.rule}" for fault in refusal.faults)
        return ("method" if "cannot be simulated" in told else "plan"), told
