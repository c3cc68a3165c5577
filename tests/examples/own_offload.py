"""An offload policy of one's own: the optimizer state of every third subgroup on drives, every fourth on the GPU.

What is on the GPU is updated there while the CPU updates the rest; the last subgroups of the model come first, because
their gradients are the first to be there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import clustersim as cs
from clustersim.workload.offload import OffloadPolicy, Place, Subgroup


@dataclass(frozen=True, kw_only=True)
class ThreeTiers(OffloadPolicy):
    """Drives, host and GPU."""

    name: ClassVar[str] = "three tiers"
    subgroup_size: int = 100_000_000

    def place(self, subgroup: Subgroup) -> Place:
        if subgroup.index % 4 == 3:
            return Place(gradients="gpu", states="gpu")
        return Place(states="nvme" if subgroup.index % 3 == 0 else "host")

    def tier(self, subgroup: Subgroup) -> str:
        return "gpu" if subgroup.index % 4 == 3 else "cpu"

    def order(self, subgroups: Sequence[Subgroup], step: int) -> Sequence[int]:
        return range(len(subgroups))[::-1]

    def depends(self, subgroup: Subgroup) -> str:
        return "gradient"


def step(policy: OffloadPolicy | None, gpus: int = 8) -> cs.Result:
    """Llama 2 7B under ZeRO-3, one sequence a GPU."""
    plan = cs.ParallelPlan(zero=3, recompute="full", offload=policy)
    model = cs.load_model("llama-2-7b")
    job = cs.training_step(model, plan, global_batch=gpus, micro_batch=1, seq_len=4096, num_devices=gpus)
    return cs.simulate(cs.load_topology("dgx-h100"), job, steps=3)


if __name__ == "__main__":
    for offload in (None, OffloadPolicy(subgroup_size=100_000_000), ThreeTiers()):
        found = cs.summary(step(offload))
        held = " ".join(f"{tier} {nbytes / 2**30:.1f}" for tier, nbytes in found["peak_memory_bytes"].items() if nbytes)
        print(f"{offload.name if offload else 'none'}: {found['step_time_s']:.3f} s, GiB a rank: {held}")
