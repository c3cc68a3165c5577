"""Settings of checkpoints that changed nothing, by what was saved."""

from __future__ import annotations

from clustersim.study.given_setting import GivenSetting
from clustersim.workload.checkpoint import Checkpoint
from clustersim.workload.op import Copy, HostWork, Storage

__all__ = ["chunks_alike", "largest_chunk"]

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


def _largest_piece(case: GivenSetting) -> int | None:
    """Bytes that are copied or read at a time, at most [B]; None where what is saved stays where it is."""
    found = (op for op in case.ops if isinstance(op, Copy | Storage | HostWork) and op.name.startswith(_SAVES))
    pieces = [op.nbytes // 2 if isinstance(op, HostWork) else op.nbytes for op in found]
    return max(pieces, default=None)
