"""The chain of ops that set the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["critical_path"]


def critical_path(trace: pd.DataFrame, run: str | None = None) -> pd.DataFrame:
    """Follow ``cause`` from the op that ended last back to the launch.

    Parameters
    ----------
    trace : DataFrame
        the whole trace of a run, as ``Result.trace`` gives it
    run : str, optional
        which job; the one of the first row when None

    Returns
    -------
    DataFrame
        rows of the trace in order of time, with ``duration_ns`` (end - start) and ``gap_ns``, the time between the end
        of the op before (0 for the first) and the start: a pool or another rank was waited for, or the job was
        launched late. Durations and gaps together are the end of the run, to the nanosecond.

    Raises
    ------
    ValueError
        when the trace is empty, holds several ranks' copies of one row, or lacks a row that another names as its cause
    """
    import pandas as pd

    if trace.empty:
        raise ValueError("trace: has no rows, so no critical path")
    if not trace.index.is_unique:
        raise ValueError("trace: its labels must be unique; the critical path of a run is that of its whole trace")
    of_run = trace["run"].to_numpy() == (trace["run"].iloc[0] if run is None else run)
    if not of_run.any():
        raise ValueError(f"run: {run!r} is not in the trace; it must be one of {sorted(set(trace['run']))}")

    start, end = trace["start_ns"].to_numpy(), trace["end_ns"].to_numpy()
    step = trace["step"].to_numpy()
    in_last_step = np.flatnonzero(of_run & (step == step[of_run].max()))
    cause = trace["cause"].to_numpy()
    position = np.where(cause < 0, -1, trace.index.get_indexer(pd.Index(cause)))

    at = int(in_last_step[np.argmax(end[in_last_step])])
    path = [at]
    while cause[at] >= 0:
        before = int(position[at])
        if before < 0:
            raise ValueError(f"trace: row {trace.index[at]} names {cause[at]} as its cause, which is not in the trace")
        if end[before] > start[at] or len(path) > len(trace):
            raise ValueError(f"trace: row {trace.index[at]} starts before its cause {cause[at]} ends")
        path.append(before)
        at = before
    path.reverse()

    rows = trace.iloc[path].copy()
    rows["duration_ns"] = end[path] - start[path]
    rows["gap_ns"] = start[path] - np.concatenate(([0], end[path[:-1]]))
    return rows
