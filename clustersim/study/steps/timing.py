"""Seconds of a job's step: simulated in full, or from short batches where its time is a straight line of their number.

A step of m micro-batches takes a + b·m once a pipeline runs at its period: m micro-batches go through one after the
other, and what comes before and after them does not depend on m. Three short batches are simulated with equal distances;
where their times lie on one line to within :data:`TOLERANCE`, the line gives the time of the long one. Otherwise the
whole batch is simulated.
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
    number = job.num_micro_batches
    short = _short(job)
    if not short or number <= sum(short):
        return _full(job)
    results = {m: _run(job.with_micro_batches(m)) for m in short}
    first, second, third = (_seconds(results[m]) for m in short)
    slope = (third - first) / (short[2] - short[0])
    if abs(second - (first + slope * (short[1] - short[0]))) > TOLERANCE * second:
        return _full(job)
    seconds = third + slope * (number - short[2])
    return _told(job, results[short[2]], seconds, short[2])


def _full(job: StepJob) -> StepTime:
    result = _run(job)
    return _told(job, result, _seconds(result), job.num_micro_batches)


def _short(job: StepJob) -> tuple[int, int, int] | None:
    """Three batches with equal distances, the first longer than the pipeline; None for schedules without a period."""
    plan = job.plan
    if plan.schedule is not None and plan.schedule not in ("1f1b", "interleaved"):
        return None
    if plan.pp == 1:
        return 2, 3, 4
    if (plan.vpp or 1) > 1:
        return 2 * plan.pp, 3 * plan.pp, 4 * plan.pp
    return plan.pp + 1, plan.pp + 2, plan.pp + 3


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
