"""Updates as they stand in a program, for policies that no card has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import clustersim as cs
from clustersim.workload.offload import OffloadPolicy, Place, Subgroup
from clustersim.workload.offload.place import Updater


@dataclass(frozen=True, kw_only=True)
class OnDrivesByTheGpu(OffloadPolicy):
    """States on drives, updates on the GPU."""

    name: ClassVar[str] = "on drives by the GPU"
    subgroup_size: int = 100_000_000

    def place(self, subgroup: Subgroup) -> Place:
        return Place(gradients="gpu", states="nvme")

    def tier(self, subgroup: Subgroup) -> Updater:
        return "gpu"


def test_states_are_written_when_all_of_them_have_left_the_gpu() -> None:
    plan = cs.ParallelPlan(zero=3, recompute="full", offload=OnDrivesByTheGpu())
    job = cs.training_step(
        cs.load_model("llama-3.2-1b"), plan, global_batch=4, micro_batch=1, seq_len=512, num_devices=4
    )
    trace = cs.simulate(cs.load_topology("jlse-h100"), job, steps=1).trace_of([0])
    ends = [trace.loc[trace["name"] == f"return fp32 {s}", "end_ns"] for s in ("weights", "momentum", "variance")]
    starts = trace.loc[trace["name"] == "write optimizer state", "start_ns"]
    assert len(starts) > 1
    for returned in ends:
        assert (starts.sort_values().to_numpy() >= returned.sort_values().to_numpy()).all()
