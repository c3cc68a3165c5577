"""The classes of an instant, held against counting nanosecond by nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.analysis.partition import AXES, axes_of, class_names, partition
from clustersim.trace.schema import CATEGORIES

AXES_AND_ONE = axes_of(["tp", "edp", ""])
POOLS = ("lock", "pinned")
NAMES = class_names(AXES_AND_ONE, POOLS)

ops = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(0, 6),
        st.integers(0, 8),
        st.sampled_from(CATEGORIES),
        st.sampled_from(AXES_AND_ONE),
        st.sampled_from(["", "", *POOLS]),
    ),
    max_size=12,
)


def spent(rows, edges):
    ready = np.array([r for r, *_ in rows], np.int64)
    start = ready + np.array([w for _, w, *_ in rows], np.int64)
    return partition(
        ready_ns=ready,
        start_ns=start,
        end_ns=start + np.array([d for _, _, d, *_ in rows], np.int64),
        category=np.array([CATEGORIES.index(c) for *_, c, _, _ in rows], np.int64),
        axis=np.array([AXES_AND_ONE.index(a) for *_, a, _ in rows], np.int64),
        edges_ns=np.array(edges, np.int64),
        num_axes=len(AXES_AND_ONE),
        pool=np.array([POOLS.index(p) if p else -1 for *_, p in rows], np.int64),
        num_pools=len(POOLS),
    )


def class_at(instant, rows):
    """The rules of the module's docstring, one after the other."""
    working, waiting = [], []
    for ready, wait, duration, category, axis, pool in rows:
        if ready + wait <= instant < ready + wait + duration:
            working.append((category, axis))
        if ready <= instant < ready + wait:
            waiting.append((category, axis) if not pool else (pool, ""))
    for category in ("compute", "optimizer"):
        if any(c == category for c, _ in working):
            return category
    for axis in AXES_AND_ONE:
        if ("communication", axis) in working:
            return f"exposed_comm.{axis}"
    if any(c in ("copy", "storage") for c, _ in working):
        return "exposed_copy"
    if any(c == "host" for c, _ in working):
        return "host"
    if any(c == "communication" and axis in ("tp", "cp", "ep") for c, axis in waiting):
        return "wait"
    if ("communication", "pp") in waiting:
        return "bubble"
    for pool in POOLS:
        if (pool, "") in waiting:
            return f"wait.{pool}"
    if waiting:
        return "wait"
    return "host" if any(c == "launch" for c, _ in working) else "bubble"


@settings(deadline=None)
@given(ops, st.lists(st.integers(0, 30), min_size=2, max_size=5).map(sorted))
def test_agrees_with_counting_each_nanosecond(rows, edges):
    counted = np.zeros((len(edges) - 1, len(NAMES)), np.int64)
    for window in range(len(edges) - 1):
        for instant in range(edges[window], edges[window + 1]):
            counted[window, NAMES.index(class_at(instant, rows))] += 1
    np.testing.assert_array_equal(spent(rows, edges), counted)


@settings(deadline=None)
@given(ops, st.lists(st.integers(0, 30), min_size=2, max_size=5).map(sorted))
def test_sums_to_the_steps(rows, edges):
    np.testing.assert_array_equal(spent(rows, edges).sum(axis=1), np.diff(edges))


def test_a_day_of_nanoseconds_sums_exactly():
    day = 86_400 * 10**9 + 1
    rows = [(0, 1, day // 3, "compute", "tp", ""), (7, 0, day // 2, "communication", "dp", "pinned")]
    assert int(spent(rows, [0, day]).sum()) == day


def test_axes_of_a_trace_come_after_the_usual_ones():
    assert (*AXES, "edp") == AXES_AND_ONE
    assert axes_of([]) == AXES
