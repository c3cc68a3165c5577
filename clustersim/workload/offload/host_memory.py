"""Which memory of the host offloaded weights, gradients and states are in, and how copies reach it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clustersim.workload.op import Memory

__all__ = ["HostMemory"]


@dataclass(frozen=True, kw_only=True)
class HostMemory:
    """The memory of the host that a policy uses.

    Parameters
    ----------
    pinned : bool
        host memory is page-locked; else copies go through the driver's staging buffer and hold up who asks for them
    pinned_weights : bool, optional
        the same of what new weights are copied from alone; None: as ``pinned``
    pinned_states : bool, optional
        the same of optimizer states alone; None: as ``pinned``
    powers_of_two : bool
        pinned memory is taken in powers of two, a piece for each tensor, as PyTorch's allocator of the host does
    binding : {"numa", "none"}
        threads and memory of a rank stay on the socket of its GPU, or lie anywhere on the node
    temporaries : bool
        what the CPU casts in passes of its own crosses the link through memory that is allocated for each copy: not
        pinned, and its pages touched for the first time
    """

    pinned: bool = True
    pinned_weights: bool | None = None
    pinned_states: bool | None = None
    powers_of_two: bool = False
    binding: Literal["numa", "none"] = "numa"
    temporaries: bool = False

    @property
    def memory(self) -> Memory:
        """Which host memory its copies and passes use."""
        return "near" if self.binding == "numa" else "spread"
