"""TwinFlow: of ZeRO-3's subgroups the first are updated by the CPU, the others stay on the GPU with their state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from clustersim.faults import Fault
from clustersim.workload.offload.place import Place, Updater
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.zero_3_offload import Zero3Offload

__all__ = ["TwinFlow"]


@dataclass(frozen=True, kw_only=True)
class TwinFlow(Zero3Offload):
    """ZeRO-Offload++, which is DeepSpeed's stage 3 with ``offload_optimizer.ratio``.

    Whole subgroups are on one side or the other, so ``ratio`` acts in steps of one subgroup: with two of a rank, 0.4 is
    as good as 0. The CPU's come first in the order, and one thread asks for all updates, so the code updates the GPU's
    behind them; the idea, both at a time, is ``in_turn = false``.

    Parameters
    ----------
    ratio : float
        share of the subgroups that the CPU updates, rounded down to whole ones, in [0, 1]

    References
    ----------
    DeepSpeed, ``runtime/zero/stage3.py``, ``_create_fp32_partitions``: ``i < int(partial_offload * count)``, and
    ``_optimizer_step``; blog "DeepSpeed ZeRO-Offload++", 2023; issue 4775, ratios without effect.
    """

    name: ClassVar[str] = "twinflow"

    ratio: float = 1.0

    def tier(self, subgroup: Subgroup) -> Updater:
        """The CPU for the first subgroups."""
        return "cpu" if subgroup.index < int(self.ratio * subgroup.count) else "gpu"

    def place(self, subgroup: Subgroup) -> Place:
        """Everything is where the update is."""
        if self.tier(subgroup) == "cpu":
            return Place(weights=self.weights)
        return Place(weights=self.weights, gradients="gpu", states="gpu")

    def faults(self) -> Iterator[Fault]:
        """Those of all policies, and a share that is none."""
        yield from super().faults()
        if isinstance(self.ratio, bool) or not isinstance(self.ratio, int | float) or not 0 <= self.ratio <= 1:
            rule = "must be a share in [0, 1]"
            yield Fault(key="plan.offload.ratio", value=self.ratio, rule=rule, nearest=1.0)
