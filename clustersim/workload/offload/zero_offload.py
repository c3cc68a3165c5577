"""ZeRO-Offload: optimizer state and update on the host, gradients streamed there during the backward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from clustersim.workload.offload.policy import OffloadPolicy, Release
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["ZeroOffload"]


@dataclass(frozen=True, kw_only=True)
class ZeroOffload(OffloadPolicy):
    """As the paper has it: the update runs in tiles, and each tile's weights are copied while the next is updated.

    Parameters
    ----------
    delayed : bool
        the one-step delayed update: the CPU updates with the gradients of the step before while the GPU computes

    References
    ----------
    Ren et al., ZeRO-Offload: Democratizing Billion-Scale Model Training, 2021, sections 4 and 5.
    """

    name: ClassVar[str] = "zero-offload"

    subgroup_size: int = 100_000_000
    delayed: bool = False

    def depends(self, subgroup: Subgroup) -> Release:
        """The norm of all gradients, or nothing of this step."""
        return "previous step" if self.delayed else "norm"
