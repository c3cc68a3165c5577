"""Where the steps of a job begin and end, from the record alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.trace.record import LaneRecord

__all__ = ["step_edges"]


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
        by_step = lane.end_ns.reshape(lane.steps, -1)
        ended &= (by_step >= 0).all(axis=1)
        np.maximum(last, by_step.max(axis=1), out=last)
        became_ready = lane.ready_ns[lane.ready_ns >= 0]
        if len(became_ready):
            launch = min(launch, int(became_ready.min()))
    complete = num_steps if ended.all() else int(np.argmin(ended))
    launch = launch if launch < np.iinfo(np.int64).max else 0
    return np.maximum.accumulate(np.concatenate(([launch], last[:complete]))).astype(np.int64)
