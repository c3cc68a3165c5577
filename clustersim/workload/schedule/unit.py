"""A unit of a pipeline schedule: one micro-batch forward or backward through one chunk of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Kind", "Overlapped", "Schedule", "Table", "Unit", "units_of"]

Kind = Literal["F", "B", "I", "W"]


@dataclass(frozen=True, slots=True)
class Unit:
    """What a stage works on at one position of its schedule.

    A micro-batch passes a chunk by F and B, or by F, I and W: gradients of the weights may be left for later.

    Parameters
    ----------
    kind : {"F", "B", "I", "W"}
        forward; full backward; backward of the input only; backward of the weights only (PyTorch's letters)
    micro_batch : int
        from 0
    chunk : int
        which of the stage's chunks; a :class:`~clustersim.workload.schedule.placement.Placement` says where in the
        model it stands
    """

    kind: Kind
    micro_batch: int
    chunk: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.micro_batch}.{self.chunk}"


@dataclass(frozen=True, slots=True)
class Overlapped:
    """Two units that a stage does together, so that the communication of each hides behind the other's kernels.

    Both start once the inputs of both are there, and the stage goes on when both have ended.

    Parameters
    ----------
    forward : Unit
        of kind F
    backward : Unit
        of kind B or I, of another micro-batch or chunk

    Raises
    ------
    ValueError
        when a unit is of another kind

    References
    ----------
    DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1 and figure 4.
    """

    forward: Unit
    backward: Unit

    def __post_init__(self) -> None:
        if self.forward.kind != "F" or self.backward.kind not in ("B", "I"):
            raise ValueError(f"{self} must pair a forward (F) with a backward (B or I), in this order")

    def __str__(self) -> str:
        return f"{self.forward}+{self.backward}"


Table = Sequence[Sequence[Unit | Overlapped]]
"""For each stage what it does, in order."""

Schedule = Callable[[int, int, int], Table]
"""(num_stages, num_virtual, num_micro_batches) -> table; ``num_virtual`` chunks a stage."""


def units_of(row: Sequence[Unit | Overlapped]) -> Iterator[Unit]:
    """The units of a stage's row one by one; of an overlapped pair the forward comes first."""
    for entry in row:
        if isinstance(entry, Unit):
            yield entry
        else:
            yield entry.forward
            yield entry.backward
