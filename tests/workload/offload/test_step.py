"""What of the next step waits for which updates."""

from __future__ import annotations

import pytest

import clustersim as cs
from clustersim.workload.offload import ZeroOffload


@pytest.mark.parametrize("overlaps", [True, False])
def test_weights_are_gathered_when_their_own_update_is_through(overlaps: bool) -> None:
    policy = ZeroOffload(subgroup_size=1_000_000, overlaps_forward=overlaps)
    plan = cs.ParallelPlan(zero=3, dp=4, offload=policy)
    job = cs.training_step(cs.load_model("gpt2"), plan, global_batch=4, micro_batch=1, seq_len=128, num_devices=4)
    trace = cs.simulate(cs.load_topology("jlse-h100"), job, steps=2).trace
    trace = trace[trace["rank"] == 0].astype({"name": str, "phase": str})
    before, after = trace[trace["step"] == 0], trace[trace["step"] == 1]
    brought = before.loc[before["name"] == "bring weights", "end_ns"].sort_values().to_numpy()
    gathered = after.loc[(after["kind"] == "all_gather") & (after["phase"] == "forward"), "start_ns"].sort_values()
    (through,) = before.loc[before["name"] == "updated", "end_ns"]
    assert len(brought) > len(gathered) > 10
    assert (gathered.iloc[0] < through) == overlaps
    assert gathered.iloc[0] >= brought[0]
    assert gathered.iloc[-1] >= brought[-1]
