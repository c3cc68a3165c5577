"""How far off a simulated step may be: what residuals of kernels and collectives add up to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

from clustersim.trace.timed_work import TimedWork

__all__ = ["step_spread"]


def step_spread(timed: Sequence[TimedWork], breakdown_s: Mapping[str, Any]) -> float:
    """Standard deviation of the logarithm of a step's time.

    The step is a sum of what ranks do (``breakdown_s``). Of each class, what it is made of has its share by op time::

        variance = Σ over causes (Σ over its works of spread · share · time of the class)²

    Kernels of one kind and dtype on one device are one cause: they are off together. So are collectives of one kind on
    one axis; different causes are independent. Waiting and bubbles are other ranks' computing, and count with it.
    To first order, as if no other path through the step became the longest.

    Parameters
    ----------
    timed : Sequence[TimedWork]
        of the job
    breakdown_s : Mapping[str, Any]
        of :func:`clustersim.analysis.summary.summary` [s]

    Returns
    -------
    float
        0 for a step without any time
    """
    classes = dict(_classes(breakdown_s))
    step_s = sum(classes.values())
    if not step_s:
        return 0.0
    busy: dict[str, float] = {}
    for work in timed:
        busy[_class_of(work)] = busy.get(_class_of(work), 0.0) + work.seconds
    off: dict[tuple[str, ...], float] = {}
    for work in timed:
        name = _class_of(work)
        if busy[name]:
            cause = _cause(work)
            off[cause] = off.get(cause, 0.0) + work.spread * work.seconds / busy[name] * classes.get(name, 0.0)
    return sqrt(sum(value**2 for value in off.values())) / step_s


def _classes(breakdown_s: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Times that somebody's work accounts for [s]."""
    yield "compute", sum(breakdown_s[name] or 0.0 for name in ("compute", "bubble", "wait"))
    yield "optimizer", breakdown_s["optimizer"] or 0.0
    yield "copy", breakdown_s["exposed_copy"] or 0.0
    yield "host", breakdown_s["host"] or 0.0
    for axis, seconds in breakdown_s["exposed_comm"].items():
        yield f"communication.{axis}", seconds or 0.0


def _class_of(work: TimedWork) -> str:
    if work.category == "communication":
        return f"communication.{work.axis}"
    return "copy" if work.category == "storage" else work.category


def _cause(work: TimedWork) -> tuple[str, ...]:
    """What is off by one factor."""
    if work.kernel is not None:
        return work.device, work.kind, work.kernel.dtype
    return work.category, work.kind, work.axis or work.device
