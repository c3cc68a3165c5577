"""Seconds of a job's step: simulated in full, or from short batches where its time is a straight line of their number.

A step of m micro-batches takes a + b·m once a pipeline runs at its period: m micro-batches go through one after the
other, and what comes before and after them does not depend on m. Short batches are simulated at
equal distances, the first as long as the pipeline; as soon as three in a row lie on one line to within
:data:`TOLERANCE`, the line gives the time of the long one. Where that takes as many micro-batches as the step has, the
step itself is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from clustersim.analysis.fits import out_of_memory
from clustersim.analysis.summary import summary
from clustersim.engine.simulate import simulate
from clustersim.study.steps.step_job import StepJob
from clustersim.trace.result import Result
from clustersim.trace.steps import step_edges
from clustersim.workload.job import Ledger

__all__ = ["TOLERANCE", "StepTime", "step_time"]

TOLERANCE = 1e-6
"""Part of a short batch's time by which the third may miss the line of the first two: a few nanoseconds a micro-batch,
as each op ends on a whole one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTime:
    """What a simulation says of a step.

    Parameters
    ----------
    seconds : float
        in steady state [s]
    optimizer_s : float
        of it, in the optimizer, mean over ranks [s]
    peak_bytes : int
        most that a GPU holds [B]
    fits : bool
        whether every GPU has room for it
    ledger : Ledger
        FLOP of the step
    coverage : Mapping[str, float]
        fractions of the time of all ops that are measured, interpolated, modelled and assumed
    parts_s : Mapping[str, float]
        mean over ranks of compute, exposed communication by axis, bubble and the like, of the step or of the longest
        short batch [s]
    simulated : int
        micro-batches of the longest batch that was simulated
    notes : tuple[str, ...]
        what the job splits, pads or leaves out
    """

    seconds: float
    optimizer_s: float
    peak_bytes: int
    fits: bool
    ledger: Ledger
    coverage: Mapping[str, float]
    parts_s: Mapping[str, float] = field(default_factory=dict)
    simulated: int
    notes: tuple[str, ...] = ()


def step_time(job: StepJob) -> StepTime:
    """Simulate a step.

    Raises
    ------
    BadInput
        when the plan is not legal
    """
    number, distance = job.num_micro_batches, _distance(job)
    tried: list[tuple[int, float]] = []
    spent = 0
    while distance is not None:
        length = max(2, job.plan.pp) + len(tried) * distance
        if spent + length >= number:
            break
        spent += length
        result = _run(job.with_micro_batches(length))
        tried.append((length, _seconds(result)))
        if len(tried) > 2:
            (_, first), (_, second), (_, third) = tried[-3:]
            if abs(third - 2 * second + first) <= TOLERANCE * third:
                seconds = third + (third - second) * (number - length) / distance
                return _told(job, result, seconds, length)
    result = _run(job)
    return _told(job, result, _seconds(result), number)


def _distance(job: StepJob) -> int | None:
    """Micro-batches from one short batch to the next; None for schedules that have no period known here."""
    plan = job.plan
    if plan.schedule is not None and plan.schedule not in ("1f1b", "interleaved"):
        return None
    return plan.pp if (plan.vpp or 1) > 1 else max(1, plan.pp // 4)


def _run(job: StepJob) -> Result:
    return simulate(job.machine.topology(), job.job(), steps=2 if _crosses(job) else 1)


def _crosses(job: StepJob) -> bool:
    """Whether one step's communication goes on beside the next, so that the first is no steady state."""
    plan = job.plan
    alone = (plan.dp or 1) * plan.cp * max(plan.ep, 1) == 1
    return not alone and (plan.overlap_dp or plan.fsdp or plan.zero == 3)


def _seconds(result: Result) -> float:
    """The last step [s]."""
    return float(np.diff(step_edges(result.record.lanes))[-1]) / 1e9


def _told(job: StepJob, result: Result, seconds: float, simulated: int) -> StepTime:
    said = summary(result)
    parts = {key: value for key, value in said["breakdown_s"].items() if key != "exposed_comm"}
    parts |= {f"exposed_comm.{axis}": value for axis, value in said["breakdown_s"]["exposed_comm"].items()}
    whole = job.with_micro_batches(simulated)
    ledger = result.record.jobs[0].ledger
    scale = job.global_batch / whole.global_batch
    return StepTime(
        seconds=seconds,
        optimizer_s=parts["optimizer"],
        peak_bytes=said["peak_memory_bytes"]["gpu"],
        fits=out_of_memory(result.record, result.topology) is None,
        ledger=Ledger(
            tokens=round(ledger.tokens * scale),
            samples=round(ledger.samples * scale),
            model_flops=round(ledger.model_flops * scale),
            model_flops_full_attention=round(ledger.model_flops_full_attention * scale),
            dtype=ledger.dtype,
        ),
        coverage=said["coverage"],
        parts_s=parts,
        simulated=simulated,
        notes=tuple(said["warnings"]),
    )
