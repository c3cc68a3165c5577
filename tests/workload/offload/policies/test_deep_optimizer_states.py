"""Deep Optimizer States: windows, staging through one set of buffers, weights by one thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustersim as cs
from clustersim.workload.offload import DeepOptimizerStates, OffloadPolicy, Place, Zero3Offload
from clustersim.workload.offload.subgroup import Subgroup

MODEL, NODE = "llama-3.2-1b", "jlse-h100"
PARAMETERS = cs.load_model(MODEL).num_parameters
POLICY = DeepOptimizerStates(subgroup_size=10_000_000)


def those(count: int) -> list[Subgroup]:
    return [Subgroup(index=n, count=count, axis="dp", chunk=0, parts=((n, 100),)) for n in range(count)]


def run(policy: OffloadPolicy, **plan: Any) -> cs.Result:
    settings = cs.ParallelPlan(zero=3, dp=4, recompute="full", gradient_dtype="bf16", offload=policy, **plan)
    job = cs.training_step(cs.load_model(MODEL), settings, global_batch=4, micro_batch=1, seq_len=512, num_devices=4)
    return cs.simulate(cs.load_topology(NODE), job)


def ops(policy: OffloadPolicy, **plan: Any) -> pd.DataFrame:
    """The updates of one rank in one step, in the order of their starts."""
    trace = run(policy, **plan).trace
    mine = trace[(trace["rank"] == 0) & (trace["step"] == 1) & (trace["phase"].astype(str) == "optimizer")]
    return mine.assign(name=mine["name"].astype(str)).sort_values("start_ns", ignore_index=True)


def named(table: pd.DataFrame, name: str) -> pd.DataFrame:
    return table[table["name"] == name]


@given(st.integers(2, 9), st.integers(1, 60))
def test_the_last_of_each_window_is_the_gpus(stride: int, count: int) -> None:
    policy = replace(POLICY, stride=stride)
    for subgroup in those(count):
        gpu = subgroup.index % stride == stride - 1
        assert policy.tier(subgroup) == ("gpu" if gpu else "cpu")
        assert policy.window(subgroup) == subgroup.index // stride
        assert policy.place(subgroup) == Place(weights="gpu", gradients="gpu" if gpu else "host", states="host")


def test_states_pass_through_one_set_of_buffers() -> None:
    """Of each tensor one is on the GPU: the next comes when the one before has left."""
    table = ops(POLICY)
    for what in ("weights", "momentum", "variance"):
        come, leave = named(table, f"bring fp32 {what}"), named(table, f"return fp32 {what}")
        assert len(come) == len(leave) > 3
        assert (come["start_ns"].to_numpy()[1:] >= leave["end_ns"].to_numpy()[:-1]).all()
        assert come["nbytes"].sum() == leave["nbytes"].sum()


def test_all_copies_of_states_are_on_one_stream() -> None:
    for duplex in (False, True):
        table = ops(replace(POLICY, duplex=duplex))
        copies = table[table["name"].str.contains("fp32")].sort_values("start_ns")
        starts, ends = copies["start_ns"].to_numpy(), copies["end_ns"].to_numpy()
        assert (starts[1:] >= ends[:-1]).all() != duplex


def test_a_window_waits_for_the_weights_of_the_one_before() -> None:
    table = ops(replace(POLICY, stride=3))
    adam, weights = named(table, "cpu adam"), named(table, "bring weights")
    assert len(adam) == len(weights)
    begins, ends = adam["start_ns"].to_numpy(), weights["end_ns"].to_numpy()
    for first in range(2, len(adam), 2):
        assert begins[first] >= ends[first - 1]


@pytest.mark.parametrize("in_turn", [True, False])
def test_no_update_of_the_gpu_runs_ahead_of_its_window(in_turn: bool) -> None:
    """Also where it does not wait for the CPU's of its own window."""
    table = ops(replace(POLICY, in_turn=in_turn))
    on_gpu, weights = table[table["name"].isin(["adam", "adamw"])], named(table, "bring weights")
    begins, ends = on_gpu["start_ns"].to_numpy()[1:], weights["end_ns"].to_numpy()
    assert len(begins) > 3
    assert (begins >= ends[: len(begins)]).all()
    casts = named(table, "cast weights")["start_ns"].to_numpy()
    assert (on_gpu["start_ns"].to_numpy()[: len(casts)] >= casts[: len(on_gpu)]).all() == in_turn


def test_beside_the_cpus_update_copies_take_memory_bandwidth_from_it() -> None:
    """Taken in turn, they pass beside the cast, which one thread bounds."""
    plan = cs.ParallelPlan(zero=3, dp=4, recompute="full", gradient_dtype="bf16", update_kernels="foreach")
    node, adam = cs.load_topology(NODE), {}
    for in_turn in (True, False):
        offload = replace(POLICY, in_turn=in_turn)
        job = cs.training_step(
            cs.load_model(MODEL), replace(plan, offload=offload), global_batch=4, micro_batch=1, seq_len=512
        )
        for faster in (1.0, 3.0):
            memory = {f"node0/cpu{n}/dram": faster for n in (0, 1)}
            trace = cs.simulate(node, job, steps=2, perturb={"slow_links": memory}).trace
            mine = trace[(trace["rank"] == 0) & (trace["name"] == "cpu adam")]
            adam[in_turn, faster] = int((mine["end_ns"] - mine["start_ns"]).sum())
    assert adam[False, 1.0] > 1.1 * adam[True, 1.0]
    assert adam[False, 3.0] == pytest.approx(adam[True, 3.0], rel=1e-3)


def test_one_thread_casts_when_the_window_is_updated() -> None:
    table = ops(replace(POLICY, stride=3))
    adam, casts = named(table, "cpu adam"), named(table, "cast weights")
    ends = adam["end_ns"].to_numpy()
    for number, start in enumerate(casts["start_ns"].to_numpy()):
        last = min(number // 2 * 2 + 1, len(ends) - 1)
        assert start >= ends[last]
    assert (casts["start_ns"].to_numpy()[1:] >= casts["end_ns"].to_numpy()[:-1]).all()


def test_gradients_of_the_gpus_subgroups_stay_there() -> None:
    trace = run(POLICY).trace
    mine = trace[(trace["rank"] == 0) & (trace["step"] == 1)]
    gone = mine[mine["name"].astype(str) == "offload gradients"]["nbytes"].sum()
    updated = named(ops(POLICY), "cpu adam")["nbytes"].sum()
    assert gone / 4 == pytest.approx(updated / 28, rel=1e-6)
    assert 0.3 < gone / 4 / (PARAMETERS / 4) < 0.8


def test_the_flush_of_gradients_is_the_backward_pass_of_the_ablation() -> None:
    blocking = replace(POLICY, blocking=True, cast="cpu", temporaries=True)
    alone, with_it = (cs.summary(run(policy))["phases_s"] for policy in (blocking, POLICY))
    assert with_it["backward"] < 0.7 * alone["backward"]


def test_interleaving_shortens_the_update() -> None:
    """Half of the weights updated by each: less than two thirds of the CPU's time for all."""
    plain = Zero3Offload(subgroup_size=10_000_000, cast="gpu", cast_weights="cpu", blocking=False)
    mine, all_cpu = (cs.summary(run(policy, update_kernels="foreach"))["phases_s"] for policy in (POLICY, plain))
    assert mine["update"] < 0.67 * all_cpu["update"]


def test_memory() -> None:
    """On the GPU one set of states and gradients of its class more; on the host fp32 gradients of all."""
    policy = replace(POLICY, powers_of_two=False)
    plain = Zero3Offload(subgroup_size=10_000_000, powers_of_two=False, pinned_states=True)
    mine, other = (cs.summary(run(each))["peak_memory_bytes"] for each in (policy, plain))
    assert mine["host_pinned"] == pytest.approx((12 + 4 + 2) * PARAMETERS / 4, rel=0.02)
    assert other["host_pinned"] == pytest.approx((12 + 4 + 2) * PARAMETERS / 4, rel=0.02)
    assert mine["gpu"] > other["gpu"]


@pytest.mark.parametrize("stride", [1, 0, 2.5])
def test_a_stride_leaves_the_cpu_something(stride: int) -> None:
    (fault,) = replace(POLICY, stride=stride).faults()
    assert (fault.key, fault.nearest) == ("plan.offload.stride", 2)
