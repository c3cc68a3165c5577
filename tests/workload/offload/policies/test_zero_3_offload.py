"""ZeRO-3 offload as its code does it: one thread, copies through fresh memory, gradients through a buffer and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.offload import OffloadPolicy, Place, Zero3Offload
from clustersim.workload.offload.gradient_path import gradient_path
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.op import Compute, Copy, HostWork

MODEL, NODE = "llama-3.2-1b", "polaris"
PARAMETERS = cs.load_model(MODEL).num_parameters
POLICY = Zero3Offload(subgroup_size=50_000_000)
LATER = replace(POLICY, cast="gpu", cast_weights="cpu", blocking=False)
SUBGROUP = Subgroup(index=0, count=1, axis="dp", chunk=0, parts=((0, 100),))


def run(policy: OffloadPolicy, *, micro_batches: int = 1, **plan: Any) -> cs.Result:
    settings = cs.ParallelPlan(zero=3, dp=4, recompute="full", gradient_dtype="bf16", offload=policy, **plan)
    job = cs.training_step(
        cs.load_model(MODEL), settings, global_batch=4 * micro_batches, micro_batch=1, seq_len=512, num_devices=4
    )
    return cs.simulate(cs.load_topology(NODE), job)


def moved(result: cs.Result, name: str) -> int:
    """Bytes of one rank in the second step."""
    trace = result.trace
    mine = trace[(trace["rank"] == 0) & (trace["step"] == 1) & (trace["name"].astype(str) == name)]
    return int(mine["nbytes"].sum())


def test_states_and_gradients_are_on_the_host() -> None:
    assert POLICY.place(SUBGROUP) == Place(weights="gpu", gradients="host", states="host")
    assert replace(POLICY, weights="host").place(SUBGROUP).weights == "host"


def test_a_gradient_goes_there_and_back_and_there_again() -> None:
    """2 B each way through the flat buffer, then 2 B into memory that is not pinned, where the CPU makes 4 of them."""
    path = gradient_path(POLICY, "host", 1000, width=2)
    copies = [(op.kind, op.nbytes, op.pageable) for op in path.leave if isinstance(op, Copy)]
    assert copies == [("d2h", 2000, False), ("h2d", 2000, False), ("d2h", 2000, True)]
    work = [(op.kind, op.nbytes) for op in (*path.leave, *path.arrive) if isinstance(op, HostWork)]
    assert work == [("touch", 2000), ("cast", 6000)]
    (norm,) = [op for op in path.leave if isinstance(op, Compute)]
    assert norm.nbytes == (2 + 8 + 8) * 1000  # fp64, written and read


def test_earlier_micro_batches_stay_in_the_buffer() -> None:
    first = gradient_path(POLICY, "host", 1000, width=2, last=False)
    later = gradient_path(POLICY, "host", 1000, width=2, last=False, adds=True)
    assert [op.name for op in first.leave] == ["buffer gradients", "return gradients"]
    assert [op.name for op in later.leave] == ["return gradients", "add gradients", "buffer gradients"]
    assert not first.arrive
    assert not later.arrive


def test_later_releases_cast_on_the_gpu() -> None:
    path = gradient_path(LATER, "host", 1000, width=2)
    last = [op for op in path.leave if isinstance(op, Copy)][-1]
    assert (last.nbytes, last.pageable) == (4000, False)
    assert not [op for op in (*path.leave, *path.arrive) if isinstance(op, HostWork)]


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_bytes_of_a_step(micro_batches: int) -> None:
    share = PARAMETERS / 4
    result = run(POLICY, micro_batches=micro_batches)
    found = {
        name: moved(result, name) / share
        for name in ("buffer gradients", "return gradients", "offload gradients", "bring weights", "cpu adam")
    }
    expected = {"buffer gradients": 2 * micro_batches, "return gradients": 2 * micro_batches}
    expected |= {"offload gradients": 2, "bring weights": 2, "cpu adam": 28}
    assert found == pytest.approx(expected, rel=1e-4)


def test_one_thread_does_one_thing_at_a_time() -> None:
    trace = run(POLICY).trace
    kinds = {"cpu adam", "scale gradients", "cast weights", "touch memory", "bring weights"}
    mine = trace[(trace["rank"] == 0) & (trace["step"] == 1) & (trace["phase"].astype(str) == "optimizer")]
    thread = mine[mine["name"].astype(str).isin(kinds)].sort_values("start_ns")
    assert (thread["start_ns"].to_numpy()[1:] >= thread["end_ns"].to_numpy()[:-1]).all()
    assert set(thread["name"].astype(str)) == kinds


def test_what_later_releases_change_is_the_backward_pass() -> None:
    """DeepSpeed pull request 6962: of a 3B model it took 25.6 s, then 1.17 s, of which the cast is one part."""
    phases = {policy: cs.summary(run(policy))["phases_s"] for policy in (POLICY, LATER)}
    assert phases[LATER]["backward"] < 0.5 * phases[POLICY]["backward"]
    assert phases[LATER]["update"] == pytest.approx(phases[POLICY]["update"], rel=0.01)


def test_pinned_memory_is_taken_in_powers_of_two() -> None:
    """Gradients and the buffer of each subgroup are pinned, states are not."""
    exact, rounded = (cs.summary(run(replace(POLICY, powers_of_two=on)))["peak_memory_bytes"] for on in (False, True))
    assert exact["host_pinned"] < rounded["host_pinned"] <= 2 * exact["host_pinned"]
    assert exact["host_pageable"] == rounded["host_pageable"]
    assert exact["host_pinned"] == pytest.approx((4 + 2) * PARAMETERS / 4, rel=0.01)


def test_weights_on_the_host_are_fetched_for_each_use() -> None:
    home = run(replace(POLICY, weights="host"))
    assert moved(home, "fetch weights") == pytest.approx(2 * 2 * PARAMETERS / 4, rel=0.02)  # forward and backward
    assert moved(home, "bring weights") == 0
