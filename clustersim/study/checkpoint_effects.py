"""Settings of checkpoints that changed nothing, by what was saved."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from clustersim.study.given_setting import GivenSetting
from clustersim.trace.result import Result
from clustersim.workload.arrays import Arrays
from clustersim.workload.checkpoint import Checkpoint
from clustersim.workload.checkpoint.policy import PHASE
from clustersim.workload.job import Job
from clustersim.workload.op import Copy, HostWork, Storage

__all__ = ["chunks_alike", "largest_chunk", "mostly_pieces"]

MANY_OPS = 100_000
"""From which on a run takes seconds, where each op is an event."""

_SAVES = "save "
"""Names of the ops that bring a piece to the host begin so."""


def chunks_alike(case: GivenSetting) -> str | None:
    """The reason why another ``chunk_bytes`` than by default cut nothing otherwise; None where it may have."""
    largest = _largest_piece(case)
    if largest is None or largest >= min(case.value, Checkpoint.chunk_bytes):
        return None
    return f"no piece of a rank's part is larger than {largest} B"


def largest_chunk(case: GivenSetting) -> str | None:
    """A sentence where chunks have room for more than any piece."""
    largest = _largest_piece(case)
    if largest is None or largest >= case.value:
        return None
    return f"{case.value} B is as good as {largest} B: no piece of a rank's part, by files and buffer, is larger"


def mostly_pieces(job: Job, result: Result) -> Iterator[str]:
    """A sentence where a long run is long because saves are cut fine."""
    if job.plan.get("checkpoint") is None:
        return
    lanes = result.record.lanes
    of_saves = sum(lane.rounds * int(_saves(lane.arrays).sum()) for lane in lanes)
    num_ops = sum(len(lane.start_ns) for lane in lanes)
    if num_ops > MANY_OPS and 2 * of_saves > num_ops:
        yield (
            f"plan.checkpoint.chunk_bytes: {of_saves} of the {num_ops} ops that were played are of pieces of saves; "
            "larger pieces would be simulated faster"
        )


def _saves(arrays: Arrays) -> NDArray[np.bool_]:
    of: NDArray[np.bool_] = np.array([phase == PHASE for phase in arrays.phases], dtype=bool)[arrays.phase]
    return of


def _largest_piece(case: GivenSetting) -> int | None:
    """Bytes that are copied or read at a time, at most [B]; None where what is saved stays where it is."""
    found = (op for op in case.ops if isinstance(op, Copy | Storage | HostWork) and op.name.startswith(_SAVES))
    pieces = [op.nbytes // 2 if isinstance(op, HostWork) else op.nbytes for op in found]
    return max(pieces, default=None)
