"""SuperOffload as DeepSpeed released it, on top of its stage 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from clustersim.faults import Fault
from clustersim.workload.offload.policy import Cast, OffloadPolicy, Place, Release, Updater
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["SuperOffloadRelease"]


@dataclass(frozen=True, kw_only=True)
class SuperOffloadRelease(OffloadPolicy):
    """A worker process with most of the cores updates subgroups; the training process does the rest by itself.

    Gradients are cast on the GPU and leave in fp32 beside the backward pass. Where gradients are not clipped the worker
    is given each subgroup when its last gradient has come. The training process waits for all of them, then goes over
    the subgroups in order: it scales gradients, which may have been used by then, updates what is on the GPU, casts
    weights into a temporary tensor and copies that, which no driver has pinned. Where gradients are clipped nothing is
    updated ahead: the training process scales, lets the worker update and waits for it, casts and copies, one subgroup
    after the other.

    Parameters
    ----------
    update_cores : float
        ``cpuadam_cores_perc``
    offload_ratio : float
        ``ratio``: part of the subgroups whose state is on the host; the GPU has the first of the model
    asynchronous : bool
        updates begin during the backward pass; nothing with gradients that are clipped

    References
    ----------
    DeepSpeed, ``runtime/superoffload/superoffload_stage3.py``: ``partition_grads``, ``step``,
    ``_step_without_clipping``, ``_step_with_clipping``; ``superoffload_utils.py``: ``superoffload_optimizer_worker``,
    ``_set_cpu_affinity``; ``runtime/zero/stage3.py``: ``_create_fp32_partitions`` (which subgroups are on the GPU),
    ``initialize_optimizer_states`` (gradients in fp32), ``partition_grads`` (and once more in 16 bits).
    """

    name: ClassVar[str] = "superoffload-release"

    cast: Cast = "gpu"
    cast_weights: Cast | None = "cpu"
    pinned_weights: bool | None = False
    scales: bool = True
    serial: bool = True
    collects: bool = True
    update_cores: float | None = 0.8
    offload_ratio: float = 1.0
    asynchronous: bool = True

    def fitted(self, *, clip: bool, tokens: int) -> OffloadPolicy:
        """Synchronous where gradients are clipped."""
        return replace(self, asynchronous=False, collects=False) if clip or not self.asynchronous else self

    def place(self, subgroup: Subgroup) -> Place:
        """State and gradients of the first subgroups on the GPU."""
        return Place(gradients="gpu", states="gpu") if self.tier(subgroup) == "gpu" else Place()

    def depends(self, subgroup: Subgroup) -> Release:
        """The worker has its own gradients; the training process takes its turn when all have come."""
        return "gradient" if self.asynchronous and self.tier(subgroup) == "cpu" else "norm"

    def order(self, subgroups: Sequence[Subgroup], step: int) -> Sequence[int]:
        """The worker takes subgroups as they are complete, the last of the model first."""
        return range(len(subgroups))[:: -1 if self.asynchronous else 1]

    def tier(self, subgroup: Subgroup) -> Updater:
        """The GPU for the part that is not offloaded."""
        return "gpu" if subgroup.index < int((1 - self.offload_ratio) * subgroup.count) else "cpu"

    def host_nbytes(self, subgroup: Subgroup) -> float:
        """Gradients in 16 bits as well, for micro-batches to be added up."""
        return 2.0 if self.tier(subgroup) == "cpu" else 0.0

    def faults(self) -> Iterator[Fault]:
        """Of the base, and parts that are none."""
        yield from super().faults()
        if not 0 <= self.offload_ratio <= 1:
            rule = "must be from 0 to 1"
            nearest = min(max(self.offload_ratio, 0), 1)
            yield Fault(key="plan.offload.offload_ratio", value=self.offload_ratio, rule=rule, nearest=nearest)
