"""SuperOffload: offloading for superchips, whose CPU is strong and whose link to it is wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from clustersim.faults import Fault
from clustersim.workload.offload.casts import Cast
from clustersim.workload.offload.cpu_update import Adam
from clustersim.workload.offload.place import Place, Updater
from clustersim.workload.offload.policy import OffloadPolicy, Release
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["SuperOffload"]


@dataclass(frozen=True, kw_only=True)
class SuperOffload(OffloadPolicy):
    """As the paper has it.

    The GPU casts and fp32 crosses the link both ways. A subgroup is updated as soon as its own gradients are on the
    host, the last blocks first; whether that was right is validated beside the next step. The first blocks of the
    model, whose gradients come last and whose weights the next forward pass needs first, are updated on the GPU.

    Parameters
    ----------
    subgroup_size : int
        16·2²⁰: buckets of 64 MiB in fp32, from which on NVLink-C2C is as fast as it gets (section 4.3)
    tail : int
        subgroups, from the first of the model on, whose states stay on the GPU, n' in the paper;
        :mod:`clustersim.study.offload_tail` finds the best number
    weights : {"auto", "gpu", "host"}
        16-bit weights stay on the GPU (stationary) or come to each pass from the host (flow), or ``auto``: they flow
        from ``flow_from`` tokens on, as the activations of so many need the room
    flow_from : int
        tokens of a micro-batch on a rank. A flow of 2 bytes a weight against 2 FLOP a weight and token reaches
        n·B/(n·B + F) of the peak F at n tokens and B bytes a second: 60 % at 3,300 on a GH200 with 450 GB/s and 990
        TFLOP/s (section 4.2)
    speculates : bool
        updates do not wait for the norm of all gradients

    References
    ----------
    Lian et al., SuperOffload: Unleashing the Power of Large-Scale LLM Training on Superchips, 2025, arXiv 2509.21271,
    section 4; DeepSpeed, ``blogs/deepspeed-superoffload``.
    """

    name: ClassVar[str] = "superoffload"

    subgroup_size: int = 16 * 2**20
    adam: Adam = "adam_tuned"
    cast: Cast = "gpu"
    overlaps_forward: bool = True
    validates: bool = True
    tail: int = 0
    weights: Literal["auto", "gpu", "host"] = "auto"
    flow_from: int = 3300
    speculates: bool = True

    def fitted(self, *, clip: bool, tokens: int) -> OffloadPolicy:
        """With weights where so many tokens have them."""
        if self.weights != "auto":
            return self
        return replace(self, weights="host" if tokens >= self.flow_from else "gpu")

    def place(self, subgroup: Subgroup) -> Place:
        """All of the tail on the GPU; else weights there or on the host."""
        if subgroup.index < self.tail:
            return Place(weights="gpu", gradients="gpu", states="gpu")
        return Place(weights="host" if self.weights == "host" else "gpu")

    def order(self, subgroups: Sequence[Subgroup], step: int) -> Sequence[int]:
        """As gradients come."""
        return range(len(subgroups))[::-1]

    def depends(self, subgroup: Subgroup) -> Release:
        """Its own gradients, or the norm of all."""
        return "gradient" if self.speculates else "norm"

    def tier(self, subgroup: Subgroup) -> Updater:
        """The GPU for the tail."""
        return "gpu" if subgroup.index < self.tail else "cpu"

    def faults(self) -> Iterator[Fault]:
        """Of the base, and a negative tail."""
        yield from super().faults()
        for key, least in (("tail", 0), ("flow_from", 1)):
            value = getattr(self, key)
            if type(value) is not int or value < least:
                rule = f"must be a whole number, at least {least}"
                yield Fault(key=f"plan.offload.{key}", value=value, rule=rule, nearest=least)
