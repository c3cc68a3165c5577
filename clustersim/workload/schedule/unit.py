"""A unit of a pipeline schedule: one micro-batch forward or backward through one chunk of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Schedule", "Table", "Unit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """What a stage works on at one position of its schedule.

    Parameters
    ----------
    kind : {"F", "B"}
        forward or backward
    micro_batch : int
        from 0
    chunk : int
        which of the stage's chunks; chunk c of stage s is virtual stage c·p + s of p stages
    """

    kind: Literal["F", "B"]
    micro_batch: int
    chunk: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.micro_batch}.{self.chunk}"


Table = Sequence[Sequence[Unit]]
"""For each stage its units in order."""

Schedule = Callable[[int, int, int], Table]
"""(num_stages, num_virtual, num_micro_batches) -> table; ``num_virtual`` chunks a stage."""
