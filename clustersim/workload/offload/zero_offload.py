"""ZeRO-Offload: optimizer state and update on the host, gradients streamed there during the backward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from clustersim.workload.offload.policy import OffloadPolicy, Release
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["ZeroOffload"]


@dataclass(frozen=True, kw_only=True)
class ZeroOffload(OffloadPolicy):
    """As the paper has it.

    Two bytes a parameter cross the link each way: gradients in 16 bits while the backward pass runs, and 16-bit weights
    behind the update, which runs in tiles, so that one tile is copied while the next is updated. The CPU's Adam reads
    the former and writes the latter in passing. Ranks of a replica group share gradients, state and update (``zero``
    2); what each has updated is gathered over the ranks from its GPU.

    Parameters
    ----------
    subgroup_size : int
        of a tile: 128·2²⁰ weights, as ``TILE`` in DeepSpeed's ``csrc/includes/simd.h``
    delayed : bool
        the one-step delayed update: the CPU updates with the gradients of the step before while the GPU computes

    References
    ----------
    Ren et al., ZeRO-Offload: Democratizing Billion-Scale Model Training, 2021, arXiv 2101.06840, sections 3 to 5.
    """

    name: ClassVar[str] = "zero-offload"

    subgroup_size: int = 128 * 2**20
    delayed: bool = False

    def depends(self, subgroup: Subgroup) -> Release:
        """The norm of all gradients, or nothing of this step."""
        return "previous step" if self.delayed else "norm"
