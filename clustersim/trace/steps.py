"""Where the steps of a job begin and end.

Saves of the state end no step: they belong to the steps that wait for them, and what is written in the background to
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clustersim.trace.record import LaneRecord
from clustersim.workload.checkpoint.policy import PHASE as SAVES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["step_edges", "step_edges_of"]


def step_edges(lanes: Sequence[LaneRecord]) -> NDArray[np.int64]:
    """Instants at which a job was launched and at which each of its complete steps ended.

    Parameters
    ----------
    lanes : Sequence[LaneRecord]
        all lanes of one job

    Returns
    -------
    NDArray[int64], shape (number of complete steps + 1,)
        [ns], not decreasing. A step is complete when all its ops on all ranks and those of the steps before it have
        ended.
    """
    num_steps = min((lane.steps for lane in lanes), default=0)
    ended = np.full(num_steps, True)
    last = np.zeros(num_steps, np.int64)
    launch = np.iinfo(np.int64).max
    for lane in lanes:
        if not len(lane.end_ns):
            continue
        first, latest = _ends(lane)
        ended &= first[:num_steps] >= 0
        np.maximum(last, latest[:num_steps], out=last)
        became_ready = lane.ready_ns[lane.ready_ns >= 0]
        if len(became_ready):
            launch = min(launch, int(became_ready.min()))
    complete = num_steps if ended.all() else int(np.argmin(ended))
    launch = launch if launch < np.iinfo(np.int64).max else 0
    return np.maximum.accumulate(np.concatenate(([launch], last[:complete]))).astype(np.int64)


def _ends(lane: LaneRecord) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Earliest and latest end of the ops of each step; 0 and 0 of a step without ops [ns]."""
    arrays = lane.arrays
    by_round, period = lane.end_ns.reshape(lane.rounds, -1), arrays.period
    saves = arrays.phase == arrays.phases.index(SAVES) if SAVES in arrays.phases else None
    ends = np.zeros((2, lane.rounds, period), np.int64)
    for step in range(period):
        mine = by_round if period == 1 else by_round[:, arrays.step == step]
        counted = mine if saves is None else mine[:, ~saves[arrays.step == step]]
        if counted.size:
            ends[:, :, step] = mine.min(axis=1), counted.max(axis=1)
    earliest, latest = ends.reshape(2, -1)
    return earliest, latest


def step_edges_of(trace: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same from the rows of one run, whose steps are taken as they are.

    Parameters
    ----------
    trace : DataFrame
        at least one row

    Returns
    -------
    steps : NDArray[int64], shape (num_steps,)
        those that the rows have
    edges_ns : NDArray[int64], shape (num_steps + 1,)
        [ns], not decreasing; the first is the earliest readiness of any row
    """
    steps, position = np.unique(trace["step"].to_numpy(), return_inverse=True)
    last = np.zeros(len(steps), np.int64)
    counted = (trace["phase"] != SAVES).to_numpy()
    np.maximum.at(last, position[counted], trace["end_ns"].to_numpy()[counted])
    edges = np.concatenate(([trace["ready_ns"].to_numpy().min()], last))
    return steps.astype(np.int64), np.maximum.accumulate(edges).astype(np.int64)
