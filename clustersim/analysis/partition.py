"""What a rank does at each instant: one class out of a few, so that the classes' times add up to the step.

The step of a run is the time from the end of the step before it (the launch, for the first) to the end of its own last
op on any rank that is no save of the state. At each instant a rank is in the first of these that holds:

1. a compute op is running: ``compute``
2. an optimizer op is running: ``optimizer``
3. a communication is working: ``exposed_comm`` of its axis; the first of tp, cp, ep, pp, dp, others if several are
4. a copy or a drive is working: ``exposed_copy``
5. the host is working: ``host``
6. a tp, cp or ep collective waits for its members: ``wait``, since the layer cannot go on without it
7. a communication on pp waits for its peer: ``bubble``
8. an op waits for a pool that others hold: ``wait`` of its name, ``wait.pinned``; the first of several by name
9. any other op waits for members of its group: ``wait``
10. the host issues kernels, and none is there to run: ``host``
11. nothing is there to do: ``bubble``

An op works from its start to its end and waits from its readiness to its start: for a pool where that let it start in
the end. It counts in the step in whose time it runs, whichever step it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.trace.schema import CATEGORIES

__all__ = ["AXES", "axes_of", "class_names", "partition", "strongest"]

AXES = ("tp", "cp", "ep", "pp", "dp")
"""Mesh axes in the order in which overlapping communication is attributed to them."""

_COMPUTE, _OPTIMIZER, _COMMUNICATION, _COPY, _STORAGE, _HOST, _LAUNCH = (CATEGORIES.index(c) for c in CATEGORIES)
_IN_LAYER = [AXES.index(axis) for axis in ("tp", "cp", "ep")]
_PP = AXES.index("pp")


def axes_of(names: Sequence[str]) -> tuple[str, ...]:
    """:data:`AXES` and after them those of ``names`` that are not among them, by name."""
    return AXES + tuple(sorted({name for name in names if name} - set(AXES)))


def class_names(axes: Sequence[str] = AXES, pools: Sequence[str] = ()) -> tuple[str, ...]:
    """The classes, in the order of the columns of :func:`partition`."""
    exposed = (f"exposed_comm.{axis}" for axis in axes)
    waits = (f"wait.{pool}" for pool in pools)
    return ("compute", "optimizer", *exposed, "exposed_copy", "host", "bubble", "wait", *waits)


def partition(
    *,
    ready_ns: NDArray[np.int64],
    start_ns: NDArray[np.int64],
    end_ns: NDArray[np.int64],
    category: NDArray[np.integer],
    axis: NDArray[np.integer],
    edges_ns: NDArray[np.int64],
    num_axes: int = len(AXES),
    pool: NDArray[np.integer] | None = None,
    num_pools: int = 0,
) -> NDArray[np.int64]:
    """Split the steps of one rank by what it does.

    Parameters
    ----------
    ready_ns, start_ns, end_ns : NDArray[int64], shape (n,)
        of the rank's ops [ns]
    category : NDArray[integer], shape (n,)
        index into :data:`clustersim.trace.schema.CATEGORIES`
    axis : NDArray[integer], shape (n,)
        index into the axes, :data:`AXES` first; read for communication only
    edges_ns : NDArray[int64], shape (num_steps + 1,)
        where each step begins and the last one ends, not decreasing [ns]
    num_axes : int
        number of axes
    pool : NDArray[integer], shape (n,), optional
        index into the pools that are waited for, by name; -1 for an op that no pool kept waiting
    num_pools : int
        number of pools

    Returns
    -------
    NDArray[int64], shape (num_steps, len(class_names))
        [ns]; each row sums to the length of its step, to the nanosecond
    """
    copy, host = 2 + num_axes, 3 + num_axes
    in_layer, pipeline, pools = host + 1, host + 2, host + 3
    other, launch, nothing = pools + num_pools, pools + num_pools + 1, pools + num_pools + 2
    is_communication = category == _COMMUNICATION
    works = np.array([0, 1, 0, copy, copy, host, launch])[category] + np.where(is_communication, 2 + axis, 0)
    waits = np.where(is_communication & np.isin(axis, _IN_LAYER), in_layer, other)
    waits[is_communication & (axis == _PP)] = pipeline
    if pool is not None:
        waits = np.where(pool >= 0, pools + pool, waits)

    waiting = start_ns > ready_ns
    begins = np.concatenate((start_ns, ready_ns[waiting]))
    stops = np.concatenate((end_ns, start_ns[waiting]))
    levels = np.concatenate((works, waits[waiting]))
    first_level = strongest(begins, stops, levels, edges_ns, nothing)

    bubble, wait = host + 1, host + 2
    class_of_level = np.r_[0 : host + 1, wait, bubble, wait + 1 : wait + 1 + num_pools, wait, host, bubble]
    result = np.zeros((len(first_level), wait + 1 + num_pools), np.int64)
    for level, column in enumerate(class_of_level):
        result[:, column] += first_level[:, level]
    return result


def strongest(
    begins: NDArray[np.int64],
    stops: NDArray[np.int64],
    levels: NDArray[np.integer],
    edges: NDArray[np.int64],
    nothing: int,
) -> NDArray[np.int64]:
    """Time in each window in which each level is the lowest one among the intervals that are open.

    Sorts the endpoints and counts, per level, how many intervals are open after each.

    Parameters
    ----------
    begins, stops : NDArray[int64], shape (n,)
        of the intervals [ns]
    levels : NDArray[integer], shape (n,)
        below ``nothing``
    edges : NDArray[int64], shape (num_windows + 1,)
        of the windows, not decreasing [ns]
    nothing : int
        level of an instant without intervals

    Returns
    -------
    NDArray[int64], shape (len(edges) - 1, nothing + 1)
    """
    num_windows = len(edges) - 1
    instants = np.concatenate((begins, stops, edges))
    order = np.argsort(instants, kind="stable")
    instants = instants[order]
    change = np.repeat(np.array([1, -1, 0], np.int32), [len(begins), len(stops), len(edges)])[order]
    level = np.concatenate((levels, levels, np.full(len(edges), -1, levels.dtype)))[order]
    strongest = np.full(len(instants), nothing, np.int64)
    for candidate in range(nothing - 1, -1, -1):
        at = np.flatnonzero(level == candidate)
        if len(at):
            is_open = np.repeat(np.cumsum(change[at]) > 0, np.diff(at, append=len(instants)))
            strongest[at[0] :][is_open] = candidate
    window = np.cumsum(level == -1) - 1
    inside = (window[:-1] >= 0) & (window[:-1] < num_windows)
    cell = window[:-1][inside] * (nothing + 1) + strongest[:-1][inside]
    # Sums of whole nanoseconds stay exact in a double up to 2^53 ns, a hundred days.
    total = np.bincount(cell, weights=np.diff(instants)[inside], minlength=num_windows * (nothing + 1))
    return total.astype(np.int64).reshape(num_windows, nothing + 1)
