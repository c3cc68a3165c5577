"""The phase of a step in which subgroups are updated: what all of its ops have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.updater import cpu_update, gpu_update
from clustersim.workload.op import Compute, HostWork, Op
from clustersim.workload.optimizers.rule import Optimizer
from clustersim.workload.optimizers.separate import UpdateKernels
from clustersim.workload.passes.fragment import stream_of
from clustersim.workload.precision import Recipe
from clustersim.workload.program import Program

__all__ = ["UpdatePhase"]


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdatePhase:
    """Where updates are written, and how.

    Parameters
    ----------
    program : Program
        that they are appended to
    policy : OffloadPolicy
    recipe : Recipe
    optimizer : str or Optimizer
        of what the GPU updates
    kernels_of : {"fused", "copied", "foreach", "loop"}
        of such an update
    width : int
        bytes of a gradient on the GPU [B]
    exits : Sequence[int]
        last ops of the passes, and sums of gradients behind them
    """

    program: Program
    policy: OffloadPolicy
    recipe: Recipe
    optimizer: str | Optimizer
    kernels_of: UpdateKernels
    width: int
    exits: Sequence[int]

    def update(self, subgroup: Subgroup) -> HostWork | Compute:
        """The update itself, by who does it."""
        if self.policy.tier(subgroup) == "cpu":
            return cpu_update(self.policy, subgroup.parameters)
        return gpu_update(
            self.policy,
            subgroup.parameters,
            recipe=self.recipe,
            optimizer=self.optimizer,
            kernels_of=self.kernels_of,
            width=self.width,
        )

    def add(
        self,
        op: Op,
        after: Sequence[int],
        *,
        stream: str | None = None,
        takes: Mapping[str, int] | None = None,
        gives: Mapping[str, int] | None = None,
        start_bytes: Mapping[str, int] | None = None,
        end_bytes: Mapping[str, int] | None = None,
    ) -> int:
        """Append an op on its usual stream, or on another one; its number."""
        return self.program.add(
            op,
            stream=stream or stream_of(op),
            after=sorted(set(after)),
            phase="optimizer",
            takes=takes,
            gives=gives,
            start_bytes=start_bytes,
            end_bytes=end_bytes,
        )
