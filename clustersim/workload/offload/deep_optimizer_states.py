"""Deep Optimizer States: every k-th subgroup is updated on the GPU, its state brought and returned in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from clustersim.faults import Fault
from clustersim.workload.offload.casts import Cast
from clustersim.workload.offload.place import Place, Updater
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["DeepOptimizerStates"]


@dataclass(frozen=True, kw_only=True)
class DeepOptimizerStates(OffloadPolicy):
    """Windows of k subgroups: the CPU updates k - 1 in their order, then the GPU one.

    While the CPU works, the state of the GPU's subgroup before goes to the host and that of the next comes, into the
    same buffers. New weights of a window's CPU subgroups are cast by one thread when all are updated, and the next
    window begins when they are on the GPU. Gradients of the GPU's subgroups stay there; the others are cast on the GPU
    and leave in fp32 beside the backward pass. Before, all go through ZeRO-3's flat buffer on the host.

    ``blocking = true`` with ``cast = "cpu"`` and ``temporaries = true`` is the ablation without asynchronous flushes;
    ``plan.offload.policy = "zero-3-offload"`` with ``cast = "gpu"`` and ``blocking = false`` the one with nothing else.

    Parameters
    ----------
    stride : int
        k, at least 2
    weights : {"gpu", "host"}
        where a rank's own 16-bit weights are between their uses

    References
    ----------
    Maurya et al., Deep Optimizer States, Middleware 2024. DataStates/DeepSpeed, ``runtime/zero/stage3.py``:
    ``get_opt_update_device``, ``opt_transfers``, ``partition_grads``, ``step``; ``csrc/async_copier``: all copies of
    states are on one stream (``duplex = false``).
    """

    name: ClassVar[str] = "deep-optimizer-states"

    subgroup_size: int = 100_000_000
    powers_of_two: bool = True
    cast: Cast = "gpu"
    cast_weights: Cast | None = "cpu"
    cast_threads: int | None = 1
    flat_buffer: bool = True
    scales: bool = True
    in_turn: bool = True
    duplex: bool = False
    stride: int = 2
    weights: Literal["gpu", "host"] = "gpu"

    def tier(self, subgroup: Subgroup) -> Updater:
        """The GPU for the last of each window."""
        return "gpu" if (subgroup.index + 1) % self.stride == 0 else "cpu"

    def place(self, subgroup: Subgroup) -> Place:
        """States on the host, gradients where the update is."""
        return Place(weights=self.weights, gradients="gpu" if self.tier(subgroup) == "gpu" else "host")

    def window(self, subgroup: Subgroup) -> int:
        """Runs of k."""
        return subgroup.index // self.stride

    def host_nbytes(self, subgroup: Subgroup) -> float:
        """The host has a buffer for every fp32 gradient, also of those that stay on the GPU."""
        return 4.0 if self.tier(subgroup) == "gpu" else 0.0

    def faults(self) -> Iterator[Fault]:
        """Those of all policies, and a stride that leaves the CPU nothing."""
        yield from super().faults()
        if type(self.stride) is not int or self.stride < 2:
            rule = "must be a whole number, at least 2"
            yield Fault(key="plan.offload.stride", value=self.stride, rule=rule, nearest=2)
