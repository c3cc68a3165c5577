"""Seconds of a job's step: simulated in full, or from short batches where its time is a straight line of their number.

A step of m micro-batches takes about a + b·m once a pipeline runs at its period b: micro-batches go through one after
the other, and what comes before and after them does not depend on m. A short batch of four times as many micro-batches
as there are stages is simulated, then one of eight times as many; where its period is the same in its second and third
quarter to within :data:`TOLERANCE`, it gives the time of the long one. Otherwise the step itself is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clustersim.analysis.fits import out_of_memory
from clustersim.analysis.steady import steady_steps
from clustersim.analysis.summary import summary
from clustersim.analysis.uncertainty import step_spread
from clustersim.engine.simulate import simulate
from clustersim.study.steps.step_job import StepJob
from clustersim.trace.result import Result
from clustersim.trace.steps import step_edges
from clustersim.workload.job import Ledger

__all__ = ["TOLERANCE", "StepTime", "step_time"]

TOLERANCE = 1e-3
"""Part by which two periods of a short batch may differ. Where stages contend for links their periods drift, by 0.2 %
over hundreds of micro-batches in BLOOM's pipeline of 12 stages."""

_SHORT = (4, 8)
"""Micro-batches of the short batches that are tried, in numbers of stages."""


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
    spread : float
        standard deviation of the logarithm of ``seconds`` that residuals of kernels and collectives leave
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
    spread: float = 0.0
    simulated: int
    notes: tuple[str, ...] = ()


def step_time(job: StepJob, ran: dict[int, Result] | None = None) -> StepTime:
    """Simulate a step.

    Parameters
    ----------
    job : StepJob
    ran : dict[int, Result], optional
        runs of the same job with other batches, by number of micro-batches: they are used, and new ones added

    Raises
    ------
    BadInput
        when the plan is not legal
    """
    if job.one_layer:
        return _one_layer(job)
    ran = {} if ran is None else ran
    number = job.num_micro_batches
    for stages in _SHORT if _has_period(job) else ():
        short = stages * job.plan.pp
        if number <= short:
            break
        result = _run(job.with_micro_batches(short), ran)
        before, after = _periods(result, short)
        if abs(after - before) <= TOLERANCE * after:
            return _told(job, result, _seconds(result) + after * (number - short), short)
    result = _run(job, ran)
    return _told(job, result, _seconds(result), number)


def _one_layer(job: StepJob) -> StepTime:
    """Passes of a layer: those of a model of two without those of a model of one, the optimizer in neither."""
    one, two = (
        step_time(replace(job, one_layer=False, model=replace(job.model, num_layers=layers))) for layers in (1, 2)
    )
    seconds = (two.seconds - two.optimizer_s) - (one.seconds - one.optimizer_s)
    return replace(one, seconds=seconds, optimizer_s=0.0, parts_s={"compute": seconds})


def _has_period(job: StepJob) -> bool:
    """Whether the schedule is one whose last stage comes to do one micro-batch after the other."""
    return job.plan.schedule is None or job.plan.schedule in ("1f1b", "interleaved", "interleaved-overlapped")


def _periods(result: Result, number: int) -> tuple[float, float]:
    """Time a micro-batch on the last stage in the second and in the third quarter of a short batch [s].

    Before them the pipeline fills, after them an interleaved one empties.
    """
    ends = np.zeros(number, np.int64)
    last_stage = max(lane.arrays.stage.max() for lane in result.record.lanes)
    for lane in result.record.lanes:
        arrays = lane.arrays
        if arrays.stage.max() < last_stage:
            continue
        backward = (arrays.phase == _code(arrays.phases, "backward")) & (arrays.micro_batch >= 0)
        last = lane.end_ns.reshape(lane.rounds, -1)[-1]
        np.maximum.at(ends, arrays.micro_batch[backward], last[backward])
    quarter = number // 4
    first, middle, third = (int(ends[k * quarter - 1]) for k in (1, 2, 3))
    return (middle - first) / quarter / 1e9, (third - middle) / quarter / 1e9


def _code(names: Sequence[str], name: str) -> int:
    return list(names).index(name)


def _run(job: StepJob, ran: dict[int, Result]) -> Result:
    number = job.num_micro_batches
    if number not in ran:
        ran[number] = simulate(job.machine.topology(), job.job(), steps=_num_steps(job))
    return ran[number]


def _num_steps(job: StepJob) -> int | None:
    """Of a run; None: as many as a job with offloading takes by itself."""
    return None if job.plan.offload is not None else 2 if _crosses(job) else 1


def _crosses(job: StepJob) -> bool:
    """Whether one step's communication goes on beside the next, so that the first is no steady state."""
    plan = job.plan
    alone = (plan.dp or 1) * plan.cp * max(plan.ep, 1) == 1
    return not alone and (plan.overlap_dp or plan.fsdp or plan.zero == 3)


def _seconds(result: Result) -> float:
    """In steady state [s]."""
    duration_ns = np.diff(step_edges(result.record.lanes))
    return float(duration_ns[steady_steps(duration_ns, result.record.jobs[0].period)].mean()) / 1e9


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
        spread=step_spread(result.record.timed, said["breakdown_s"]),
        simulated=simulated,
        notes=tuple(said["warnings"]),
    )
