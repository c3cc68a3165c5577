"""Whether saves of the state have come to their steady state by the end of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.analysis.steady import steady_steps
from clustersim.trace.record import LaneRecord
from clustersim.trace.result import Result
from clustersim.trace.steps import step_edges
from clustersim.workload.checkpoint.policy import PHASE
from clustersim.workload.job import Job

__all__ = ["unsettled_saves"]

_APART = 1e-3
"""Part of a step by which the last round may differ from what is taken for the steady state."""


def unsettled_saves(job: Job, result: Result) -> Iterator[str]:
    """A sentence where no save falls into the run, or one where its files are not written when the next one begins.

    The latter is told where steps do not yet show it. A buffer that writes do not keep up with fills in the course of
    several saves; only then do copies wait for it.

    Parameters
    ----------
    job : Job
    result : Result
        of its run
    """
    if job.plan.get("checkpoint") is None or result.record.status != "ok":
        return
    lanes = result.record.lanes
    edges = step_edges(lanes)
    durations, period = np.diff(edges), job.period
    rounds = len(durations) // period
    if not any((_ends(lane) >= 0).any() for lane in lanes):
        every, num_steps = job.plan["checkpoint"]["every"], len(durations)
        yield f"plan.checkpoint: no save begins in this run, which has {num_steps} steps: one begins every {every}"
        return
    if not rounds or _written(lanes) <= edges[rounds * period] + durations[-period:].sum():
        return
    last = durations[(rounds - 1) * period : rounds * period].mean()
    steady = durations[steady_steps(durations, period)].mean()
    if rounds < 3 or not any(map(_waits, lanes)) or abs(last - steady) > _APART * steady:
        yield (
            "plan.checkpoint: files of a save are not written when the next one begins, and "
            f"{len(durations)} steps are too few to show what that costs; those of the last round take "
            f"{last / 1e9:.4g} s"
        )


def _written(lanes: Sequence[LaneRecord]) -> int:
    """When the last file is written [ns]."""
    return max(int(_ends(lane).max(initial=0)) for lane in lanes)


def _waits(lane: LaneRecord) -> bool:
    """Whether a copy of the last save waited for room in the buffer."""
    saves = np.flatnonzero(_of_saves(lane))
    of_last = (lane.rounds - 1) * len(lane.arrays.op)
    return bool(np.isin(lane.pooled[:, 0] - of_last, saves).any())


def _ends(lane: LaneRecord) -> NDArray[np.int64]:
    ends: NDArray[np.int64] = lane.end_ns.reshape(lane.rounds, -1)[:, _of_saves(lane)]
    return ends


def _of_saves(lane: LaneRecord) -> NDArray[np.bool_]:
    of: NDArray[np.bool_] = np.array([phase == PHASE for phase in lane.arrays.phases])[lane.arrays.phase]
    return of
