"""TwinFlow: which subgroups are whose, and that the code's update is not the idea's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustersim as cs
from clustersim.workload.offload import OffloadPolicy, Place, TwinFlow, Zero3Offload
from clustersim.workload.offload.subgroup import Subgroup

MODEL = "llama-3.2-1b"
PARAMETERS = cs.load_model(MODEL).num_parameters
POLICY = TwinFlow(subgroup_size=20_000_000, ratio=0.5)


def those(count: int) -> list[Subgroup]:
    return [Subgroup(index=n, count=count, axis="dp", chunk=0, parts=((n, 100),)) for n in range(count)]


def summary(policy: OffloadPolicy) -> dict[str, object]:
    plan = cs.ParallelPlan(zero=3, dp=4, recompute="full", gradient_dtype="bf16", offload=policy)
    job = cs.training_step(cs.load_model(MODEL), plan, global_batch=4, micro_batch=1, seq_len=512, num_devices=4)
    return cs.summary(cs.simulate(cs.load_topology("polaris"), job))


def update(policy: OffloadPolicy) -> float:
    return float(summary(policy)["phases_s"]["update"])  # type: ignore[index]


@given(st.floats(0, 1), st.integers(1, 60))
def test_the_first_are_the_cpus_rounded_down(ratio: float, count: int) -> None:
    who = [replace(POLICY, ratio=ratio).tier(subgroup) for subgroup in those(count)]
    assert who == ["cpu"] * int(ratio * count) + ["gpu"] * (count - int(ratio * count))


def test_two_subgroups_know_three_ratios() -> None:
    """DeepSpeed issue 4775: 0 to 0.4 are alike, and 0.5 to 0.9."""
    who = [[replace(POLICY, ratio=n / 10).tier(subgroup) for subgroup in those(2)] for n in range(11)]
    assert who == [["gpu", "gpu"]] * 5 + [["cpu", "gpu"]] * 5 + [["cpu", "cpu"]]


def test_all_of_a_subgroup_is_where_it_is_updated() -> None:
    first, last = (POLICY.place(subgroup) for subgroup in those(2))
    assert first == Place(weights="gpu", gradients="host", states="host")
    assert last == Place(weights="gpu", gradients="gpu", states="gpu")


def test_with_all_on_the_host_it_is_zero_3_offload() -> None:
    plain = Zero3Offload(subgroup_size=20_000_000)
    assert summary(replace(POLICY, ratio=1.0))["step_time_s"] == summary(plain)["step_time_s"]


def test_the_code_updates_in_turn_what_could_be_at_once() -> None:
    """Of the GPU's share, half a step's or less, the one adds to the CPU's, the other is hidden."""
    all_gpu = update(replace(POLICY, ratio=0.0))
    both, at_once = (update(replace(POLICY, in_turn=in_turn)) for in_turn in (True, False))
    assert 0.3 * all_gpu < both - at_once < 0.6 * all_gpu


def test_states_of_the_gpus_share_are_in_its_memory() -> None:
    """12 bytes a parameter of states, 2 of a gradient."""
    some, none = (summary(replace(POLICY, ratio=ratio))["peak_memory_bytes"]["gpu"] for ratio in (0.0, 1.0))  # type: ignore[index]
    assert some - none == pytest.approx((12 + 2) * PARAMETERS / 4, rel=0.15)


@pytest.mark.parametrize("ratio", [-0.1, 1.5, True])
def test_a_ratio_is_a_share(ratio: float) -> None:
    (fault,) = replace(POLICY, ratio=ratio).faults()
    assert fault.key == "plan.offload.ratio"
