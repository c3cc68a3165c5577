"""DualPipeV: a model folded over the stages like a V, each forward overlapped with a backward of the other half."""

from __future__ import annotations

from collections import deque
from typing import Literal

from clustersim.workload.schedule.placed import PlacedSchedule
from clustersim.workload.schedule.placement import vee
from clustersim.workload.schedule.unit import Kind, Overlapped, Unit

__all__ = ["dualpipe_row", "dualpipev"]

_Half = Literal[0, 1]
_BOTH: tuple[_Half, ...] = (0, 1)


def dualpipe_row(num_stages: int, stage: int, num_micro_batches: int) -> list[Unit | Overlapped]:
    """What a stage does: warm-up, pairs of F and B, drain, with W filling the gaps of both ends.

    Parameters
    ----------
    num_stages : int
        p of the V
    stage : int
    num_micro_batches : int
        m, at least 2·p

    Returns
    -------
    list[Unit | Overlapped]
        chunks 0 and 1 each m times
    """
    row: list[Unit | Overlapped] = []
    count: dict[tuple[Kind, _Half], int] = {}
    late: deque[Unit] = deque()
    below = num_stages - stage - 1

    def unit(kind: Kind, chunk: _Half) -> Unit:
        side: Kind = "F" if kind == "F" else "B"
        j = count.get((side, chunk), 0)
        count[side, chunk] = j + 1
        if kind == "I":
            late.append(Unit("W", j, chunk))
        return Unit(kind, j, chunk)

    def pair(forward: _Half, backward: _Half) -> Overlapped:
        return Overlapped(unit("F", forward), unit("B", backward))

    row += [unit("F", 0) for _ in range(2 * below)]
    row += [unit("F", chunk) for _ in range(stage + 1) for chunk in _BOTH]
    for _ in range(below):
        row += [unit("I", 1), late.popleft(), unit("F", 1)]
    for k in range(num_micro_batches - 2 * num_stages + stage + 1):
        # the first of the last stage would make the stages before it wait for a forward inside a longer pair
        row += [unit("F", 0), unit("B", 1)] if k == 0 and below == 0 else [pair(0, 1)]
        row.append(pair(1, 0))
    for _ in range(below):
        row += [unit("B", 1), pair(1, 0)]
    # of the last stage + 1 backwards of each chunk, the second half leaves its W for the gaps that follow
    row += [unit("I" if k > stage else "B", chunk) for k, chunk in enumerate(_BOTH[::-1] * (stage + 1))]
    for _ in range(below):
        row += [late.popleft(), unit("I", 0)]
    return [*row, *late]


def _table(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit | Overlapped]]:
    if num_micro_batches < 2 * num_stages:
        least = 2 * num_stages
        raise ValueError(f"num_micro_batches: {num_micro_batches} must be at least {least} for {num_stages} stages")
    return [dualpipe_row(num_stages, s, num_micro_batches) for s in range(num_stages)]


dualpipev = PlacedSchedule(name="dualpipev", table=_table, placement=vee, num_virtual=2)
"""Half of DualPipe, with the other direction as the way back: p stages do what DualPipe's 2·p do, weights held once.

Takes m of at least 2·p. With F&B for the time of a pair, no less than F or B, the most that a stage idles within the
whole (``makespan - busy``) is (p - 1)·(F&B + B - 3·W) as published where F = I and W is no longer. A longer F adds
(p - 1)·(F - I); a longer I takes off (p - 1)·(I - F), but no more than F in all. A stage holds at most 2·p + 1 chunks.

References
----------
DeepSeek-AI, DualPipe (github.com/deepseek-ai/DualPipe): steps and table of bubbles, which counts 2·p stages as PP;
Sea AI Lab, 2025 (huggingface.co/blog/ufotalent/cut-in-half).
"""
