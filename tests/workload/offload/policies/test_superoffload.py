"""SuperOffload as in its paper: what goes where, what waits for what, what a rollback costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustersim as cs
from clustersim.workload.offload import OffloadPolicy, Place, SuperOffload
from clustersim.workload.offload.place import Tier
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.op import Compute, Copy, HostWork

MODEL = replace(cs.load_model("superoffload-5b"), num_layers=6)


def those(count: int) -> list[Subgroup]:
    return [Subgroup(index=n, count=count, axis="dp", chunk=0, parts=((n, 100),)) for n in range(count)]


def job_of(policy: OffloadPolicy, *, batch: int = 8, clip: bool = True) -> cs.Job:
    plan = cs.ParallelPlan(recompute="full", clip=clip, offload=policy)
    return cs.training_step(MODEL, plan, global_batch=batch, micro_batch=batch, seq_len=1024, num_devices=1)


def ops_of(job: cs.Job) -> list[object]:
    arrays = job.programs[0].arrays()
    return [arrays.ops[n] for n in arrays.op.tolist()]


def last_step(policy: OffloadPolicy, batch: int = 8) -> pd.DataFrame:
    trace = cs.simulate(cs.load_topology("gh200"), job_of(policy, batch=batch), steps=3).trace
    return trace[trace["step"] == 2]


def step_time(policy: OffloadPolicy, batch: int = 8) -> float:
    return float(
        cs.summary(cs.simulate(cs.load_topology("gh200"), job_of(policy, batch=batch), steps=3))["step_time_s"]
    )


@given(st.integers(0, 12), st.integers(1, 10))
def test_the_first_subgroups_are_the_gpus(tail: int, count: int) -> None:
    policy = SuperOffload(tail=tail, weights="host")
    for subgroup in those(count):
        where: Tier = "gpu" if subgroup.index < tail else "host"
        assert policy.tier(subgroup) == ("gpu" if where == "gpu" else "cpu")
        assert policy.place(subgroup) == Place(weights=where, gradients=where, states=where)
    assert list(policy.order(those(count), 0)) == list(range(count))[::-1]


def test_weights_flow_from_so_many_tokens_on() -> None:
    found = [SuperOffload().fitted(clip=True, tokens=tokens) for tokens in (3299, 3300)]
    assert [policy.weights for policy in found if isinstance(policy, SuperOffload)] == ["gpu", "host"]
    chosen = SuperOffload(weights="gpu")
    assert chosen.fitted(clip=True, tokens=10**6) == chosen


def test_a_job_says_where_its_weights_are() -> None:
    for batch, where in ((1, "gpu"), (4, "host")):
        plan = job_of(SuperOffload(), batch=batch).plan
        assert plan["offload"]["weights"] == where


def test_four_bytes_a_weight_cross_each_way_and_the_gpu_casts() -> None:
    ops = ops_of(job_of(SuperOffload(weights="gpu")))
    weights = MODEL.num_parameters
    for kind in ("d2h", "h2d"):
        assert sum(op.nbytes for op in ops if isinstance(op, Copy) and op.kind == kind) == 4 * weights
    casts = [op.nbytes for op in ops if isinstance(op, Compute) and op.kind == "cast"]
    assert sum(casts) == pytest.approx(2 * 6 * weights)
    work = {op.kind for op in ops if isinstance(op, HostWork)}
    assert work == {"adam_tuned", "norm"}


def test_flowing_weights_cross_once_a_pass_in_sixteen_bits() -> None:
    """Forward, and again backward; new ones stay on the host."""
    ops = ops_of(job_of(SuperOffload(weights="host")))
    come = [op for op in ops if isinstance(op, Copy) and op.kind == "h2d"]
    assert {op.name for op in come} == {"fetch weights"}
    assert sum(op.nbytes for op in come) == pytest.approx(2 * 2 * MODEL.num_parameters, rel=0.1)


def test_updates_start_while_the_backward_pass_runs() -> None:
    for speculates in (True, False):
        trace = last_step(SuperOffload(weights="gpu", speculates=speculates))
        first = trace[trace["name"] == "cpu adam"]["start_ns"].min()
        gradients = trace[trace["name"] == "offload gradients"]["end_ns"]
        assert (first < gradients.max()) == speculates
        assert first >= gradients.min()


def test_validation_holds_up_no_update_of_its_step() -> None:
    """It reads every gradient of the host once; the next step's first update waits for it."""
    run = cs.simulate(cs.load_topology("gh200"), job_of(SuperOffload(weights="gpu")), steps=3)
    checks, updates = (run.trace[run.trace["name"] == name] for name in ("validate", "cpu adam"))
    assert (checks["nbytes"] == 4 * MODEL.num_parameters).all()
    for step in (0, 1):
        (check,) = checks[checks["step"] == step].to_dict("records")
        mine, following = (updates[updates["step"] == n] for n in (step, step + 1))
        assert (mine["start_ns"] < check["end_ns"]).any()
        assert following["start_ns"].min() >= check["end_ns"]


def test_a_rollback_reads_and_writes_each_update_twice_more() -> None:
    """The inverse and the update again, both behind the validation, then the weights once more."""
    plain, wrong = (ops_of(job_of(SuperOffload(weights="gpu", rolls_back=wrong))) for wrong in (False, True))

    def moved(ops: Sequence[object], name: str) -> int:
        return sum(op.nbytes for op in ops if isinstance(op, HostWork | Copy) and op.name == name)

    assert moved(wrong, "roll back") == moved(plain, "cpu adam") == 28 * MODEL.num_parameters
    assert moved(wrong, "cpu adam") == 2 * moved(plain, "cpu adam")
    assert moved(wrong, "bring weights") == 2 * moved(plain, "bring weights")
    trace = last_step(SuperOffload(weights="gpu", rolls_back=True))
    back, check = trace[trace["name"] == "roll back"], trace[trace["name"] == "validate"]
    assert back["start_ns"].min() >= check["end_ns"].max()


def test_what_each_idea_gains() -> None:
    """The paper's ablation by its signs: Adam for this CPU, casts by the GPU, speculation, and a tail on the GPU."""
    base = SuperOffload(
        weights="gpu",
        adam="adam",
        cast="cpu",
        speculates=False,
        validates=False,
        overlaps_forward=False,
        subgroup_size=128 * 2**20,
    )
    tuned = replace(base, adam="adam_tuned")
    casting = replace(tuned, cast="gpu")
    speculating = replace(casting, speculates=True, validates=True, overlaps_forward=True)
    parted = replace(speculating, subgroup_size=16 * 2**20, tail=4)
    seconds = [step_time(policy) for policy in (base, tuned, casting, speculating, parted)]
    assert seconds == sorted(seconds, reverse=True)
    assert len(set(seconds)) == len(seconds)


def test_settings_that_are_none_are_refused() -> None:
    keys = {fault.key for fault in SuperOffload(tail=-1, flow_from=0).faults()}
    assert keys == {"plan.offload.tail", "plan.offload.flow_from"}
