"""SuperOffload as DeepSpeed released it, on top of its stage 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from clustersim.faults import Fault
from clustersim.workload.offload.casts import Cast
from clustersim.workload.offload.place import Place, Updater
from clustersim.workload.offload.policy import OffloadPolicy, Release
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.zero_3_offload import Zero3Offload

__all__ = ["SuperOffloadRelease"]


@dataclass(frozen=True, kw_only=True)
class SuperOffloadRelease(Zero3Offload):
    """A worker process with most of the cores updates subgroups; the training process does the rest by itself.

    Gradients pass through stage 3's flat buffer, are cast on the GPU and leave in fp32. Where gradients are not clipped
    the worker is given each subgroup when its last gradient has come. The training process waits for all of them, then
    goes over the subgroups in order: it scales gradients, which have been used by then, updates what is on the GPU,
    casts weights into a temporary tensor and copies that. Where gradients are clipped nothing is updated ahead: the
    training process scales, lets the worker update and waits for it, casts and copies, one subgroup after the other.

    Parameters
    ----------
    update_cores : float
        ``cpuadam_cores_perc``
    ratio : float
        share of the subgroups whose state is on the host; the GPU has the first of the model
    asynchronous : bool
        updates begin during the backward pass; of no effect with gradients that are clipped
    blocking : bool
        copies of gradients stand on the stream of the backward pass, as without ``overlap_comm``

    References
    ----------
    DeepSpeed, ``runtime/superoffload/superoffload_stage3.py``: ``partition_grads``, ``step``,
    ``_step_without_clipping``, ``_step_with_clipping``; ``superoffload_utils.py``: ``superoffload_optimizer_worker``,
    ``_set_cpu_affinity``; ``runtime/zero/stage3.py``: ``_create_fp32_partitions``, which subgroups are on the GPU.
    """

    name: ClassVar[str] = "superoffload-release"

    cast: Cast = "gpu"
    cast_weights: Cast | None = "cpu"
    update_cores: float | None = 0.8
    ratio: float = 1.0
    asynchronous: bool = True
    blocking: bool = False
    collects: bool = True
    in_turn: bool = False

    def fitted(self, *, clip: bool, tokens: int) -> OffloadPolicy:
        """One thing after the other where gradients are clipped."""
        if self.asynchronous and not clip:
            return self
        return replace(self, asynchronous=False, collects=False, in_turn=True)

    def place(self, subgroup: Subgroup) -> Place:
        """State and gradients of the first subgroups on the GPU."""
        if self.tier(subgroup) == "gpu":
            return Place(weights=self.weights, gradients="gpu", states="gpu")
        return Place(weights=self.weights)

    def depends(self, subgroup: Subgroup) -> Release:
        """The worker waits for the subgroup's own gradients, the training process for all."""
        return "gradient" if self.asynchronous and self.tier(subgroup) == "cpu" else "norm"

    def order(self, subgroups: Sequence[Subgroup], step: int) -> Sequence[int]:
        """The worker takes subgroups as they are complete, the last of the model first."""
        return range(len(subgroups))[:: -1 if self.asynchronous else 1]

    def tier(self, subgroup: Subgroup) -> Updater:
        """The GPU for the part that is not offloaded."""
        return "gpu" if subgroup.index < int((1 - self.ratio) * subgroup.count) else "cpu"

    def faults(self) -> Iterator[Fault]:
        """Those of all policies, and a share that is none."""
        yield from super().faults()
        if isinstance(self.ratio, bool) or not isinstance(self.ratio, int | float) or not 0 <= self.ratio <= 1:
            rule = "must be a share in [0, 1]"
            yield Fault(key="plan.offload.ratio", value=self.ratio, rule=rule, nearest=1.0)
