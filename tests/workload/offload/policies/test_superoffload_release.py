"""SuperOffload as released: what the worker and the training process do, and when."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import clustersim as cs
from clustersim.workload.offload import OffloadPolicy, SuperOffloadRelease, Zero3Offload
from clustersim.workload.op import HostWork

MODEL = replace(cs.load_model("qwen3-14b"), num_layers=6)
POLICY = SuperOffloadRelease(subgroup_size=400_000_000)


def job_of(policy: OffloadPolicy, *, clip: bool, dp: int = 1) -> cs.Job:
    plan = cs.ParallelPlan(recompute="full", clip=clip, zero=3 if dp > 1 else 0, dp=dp, offload=policy)
    return cs.training_step(MODEL, plan, global_batch=4 * dp, micro_batch=4, seq_len=4096, num_devices=dp)


def last_step(policy: OffloadPolicy, *, clip: bool) -> pd.DataFrame:
    trace = cs.simulate(cs.load_topology("gh200"), job_of(policy, clip=clip), steps=3).trace
    return trace[trace["step"] == 2]


def digests(policy: OffloadPolicy, *, clip: bool, dp: int) -> list[bytes]:
    """Of the programs: equal where they are op by op and edge by edge."""
    return [program.arrays().digest for program in job_of(policy, clip=clip, dp=dp).programs]


@pytest.mark.parametrize("dp", [1, 2])
@pytest.mark.parametrize("ratio", [1.0, 0.7])
def test_with_clipping_it_is_the_synchronous_policy(dp: int, ratio: float) -> None:
    released, synchronous = (replace(POLICY, ratio=ratio, asynchronous=asynchronous) for asynchronous in (True, False))
    assert digests(released, clip=True, dp=dp) == digests(synchronous, clip=True, dp=dp)
    assert digests(released, clip=False, dp=dp) != digests(released, clip=True, dp=dp)


def test_with_clipping_it_is_stage_3_with_a_worker() -> None:
    stage_3 = Zero3Offload(subgroup_size=400_000_000, cast="gpu", cast_weights="cpu", blocking=False, update_cores=0.8)
    assert digests(POLICY, clip=True, dp=2) == digests(stage_3, clip=True, dp=2)


def test_without_clipping_updates_start_during_the_backward_pass() -> None:
    for clip in (False, True):
        trace = last_step(POLICY, clip=clip)
        first = trace[trace["name"] == "cpu adam"]["start_ns"].min()
        backward = trace[trace["phase"] == "backward"]
        assert (first < backward[backward["stream"] == "compute"]["end_ns"].max()) == (not clip)


def test_weights_come_when_all_updates_are_through() -> None:
    trace = last_step(POLICY, clip=False)
    updates = trace[trace["name"] == "cpu adam"]["end_ns"].max()
    for name in ("scale gradients", "cast weights", "bring weights"):
        assert trace[trace["name"] == name]["start_ns"].min() >= updates
    ended = trace[trace["name"] == "updated"]["start_ns"].item()
    assert ended == trace[trace["name"] == "bring weights"]["end_ns"].max()


def test_with_clipping_one_thing_follows_the_other() -> None:
    trace = last_step(POLICY, clip=True)
    work = trace[(trace["phase"] == "optimizer") & (trace["stream"] == "cpu")].sort_values("start_ns")
    assert (work["start_ns"].to_numpy()[1:] >= work["end_ns"].to_numpy()[:-1]).all()
    names = [name for name in work["name"] if name != "all gradients"]
    assert names == ["scale gradients", "cpu adam", "touch memory", "cast weights", "bring weights"] * (len(names) // 5)


def test_the_worker_has_four_fifths_of_the_cores() -> None:
    arrays = job_of(POLICY, clip=False).programs[0].arrays()
    parts = {op.name: op.part for op in arrays.ops if isinstance(op, HostWork)}
    assert parts["cpu adam"] == 0.8
    assert parts["cast weights"] == parts["scale gradients"] == pytest.approx(0.2)


def test_the_gpu_updates_the_first_subgroups() -> None:
    trace = last_step(replace(POLICY, ratio=0.7), clip=False)
    names = trace[trace["phase"] == "optimizer"]["name"].value_counts()
    count = names["cpu adam"] + names["adam"]
    assert names["adam"] == int((1 - 0.7) * count)


def test_eighteen_bytes_a_weight_are_on_the_host() -> None:
    """State, gradients in fp32, and in 16 bits in the flat buffer; the allocator takes more, in powers of two."""
    resident = job_of(replace(POLICY, powers_of_two=False), clip=False).programs[0].arrays().resident
    held = sum(nbytes for key, nbytes in resident.items() if key.startswith("host"))
    assert held == 18 * MODEL.num_parameters
    assert resident["gpu/weights"] == 2 * MODEL.num_parameters


def test_a_share_that_is_none_is_refused() -> None:
    assert [fault.nearest for fault in SuperOffloadRelease(ratio=1.5).faults()] == [1.0]
