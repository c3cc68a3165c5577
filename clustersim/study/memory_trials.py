"""The largest micro-batch that fits: trials, each a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clustersim.analysis.fits import out_of_memory
from clustersim.analysis.stage_memory import stage_memory, worst_stage
from clustersim.engine.deadlock import Deadlock
from clustersim.faults import BadInput
from clustersim.study.point import Point, prepare, run_point
from clustersim.trace.result import Result

__all__ = ["Trial", "point_result", "trials"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A micro-batch that was tried.

    Attributes
    ----------
    micro_batch : int
    fits : bool or None
        None where the rules refuse it or its run did not end
    peak_bytes : int or None
        of the GPU with the least room [B]; None where nothing ran
    reason : str
        why it is not known whether it fits
    """

    micro_batch: int
    fits: bool | None = None
    peak_bytes: int | None = None
    reason: str = ""


def trials(
    point: Point,
    result: Result,
    *,
    fold: bool,
    progress: Callable[[float], None] | None,
) -> Iterator[Trial]:
    """Micro-batches from the largest down to the first that fits.

    They are the divisors of global_batch / dp, each simulated with all else as it is. Where the bytes that are held
    throughout leave no room, none is tried.

    Parameters
    ----------
    point : Point
    result : Result
        of it
    fold : bool
        see :func:`clustersim.engine.simulate.simulate`
    progress : callable, optional
        called with the fraction of the micro-batches that are done with
    """
    setup, (job, *_) = point.setup, result.record.jobs
    if _never_fits(result):
        return
    each = setup.value("global_batch") // int(job.plan["dp"])
    candidates = [n for n in range(each, 0, -1) if each % n == 0]
    for number, micro_batch in enumerate(candidates):
        if progress is not None:
            progress(number / len(candidates))
        if micro_batch == setup.value("micro_batch"):
            trial = _judged(micro_batch, result)
        else:
            trial = _tried(point, micro_batch, fold=fold)
        yield trial
        if trial.fits:
            return


def _never_fits(result: Result) -> bool:
    """Whether what is held throughout is more than there is: no micro-batch changes that."""
    for stage in stage_memory(result.record, result.topology):
        held = sum(
            nbytes
            for key, nbytes in result.record.lane(stage.job, stage.rank).resident.items()
            if key.startswith("gpu/")
        )
        if held > stage.capacity_bytes:
            return True
    return False


def _tried(point: Point, micro_batch: int, *, fold: bool) -> Trial:
    try:
        other = prepare(point.setup.with_values({"micro_batch": micro_batch}))
        return _judged(micro_batch, point_result(other, fold=fold))
    except BadInput as refusal:
        told = "; ".join(f"{fault.key} {fault.rule}" for fault in refusal.faults)
        return Trial(micro_batch=micro_batch, reason=told)


def _judged(micro_batch: int, result: Result) -> Trial:
    peak = worst_stage(stage_memory(result.record, result.topology)).peak_bytes
    if out_of_memory(result.record, result.topology) is not None:
        return Trial(micro_batch=micro_batch, fits=False, peak_bytes=peak)
    if result.record.status == "ok":
        return Trial(micro_batch=micro_batch, fits=True, peak_bytes=peak)
    return Trial(micro_batch=micro_batch, peak_bytes=peak, reason=f"its run ended with {result.record.status}")


def point_result(point: Point, *, fold: bool) -> Result:
    """The result of a point, also of one that ends in a deadlock; raises where nothing of it ran."""
    try:
        return run_point(point, fold=fold)
    except Deadlock as deadlock:
        if deadlock.result is None:
            raise
        return deadlock.result
