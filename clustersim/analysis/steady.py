"""Which steps of a run show its steady state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["steady_steps"]


def steady_steps(duration_ns: NDArray[np.int64], period: int) -> NDArray[np.int64]:
    """Steps whose mean is the step of the steady state, and whose breakdown adds up to it.

    The median of those after the first, or the two in the middle; the only one if there is one. Where the steps of a
    program differ, a median would be one of its kinds: all whole periods after the first; the first one, or what there
    is of it, if there is no other.

    Parameters
    ----------
    duration_ns : NDArray[int64], shape (num_steps,)
        of each step [ns]
    period : int
        steps after which they are alike again

    Returns
    -------
    NDArray[int64]
        numbers of steps
    """
    if len(duration_ns) < 2:
        return np.arange(len(duration_ns))
    if period > 1:
        whole = len(duration_ns) // period * period
        return np.arange(period if whole > period else 0, whole or len(duration_ns))
    by_duration = 1 + np.argsort(duration_ns[1:], kind="stable")
    return by_duration[(len(by_duration) - 1) // 2 : len(by_duration) // 2 + 1]
