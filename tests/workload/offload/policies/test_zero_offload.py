"""ZeRO-Offload as in its paper, and DeepSpeed's stage 2 as its code runs it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest

import clustersim as cs
from clustersim.workload.model import Model
from clustersim.workload.offload import OffloadPolicy, Zero2Offload, ZeroOffload
from clustersim.workload.op import Copy, HostWork

TILE = 128 * 2**20


def job_of(model: Model, policy: OffloadPolicy, *, dp: int = 1, batch: int = 1, **plan: object) -> cs.Job:
    return cs.training_step(
        model,
        cs.ParallelPlan(dp=dp, offload=policy, **plan),  # type: ignore[arg-type]
        global_batch=batch * dp,
        micro_batch=1,
        seq_len=128,
        num_devices=dp,
    )


def crossing(job: cs.Job, kind: str) -> int:
    """Bytes a step."""
    arrays = job.programs[0].arrays()
    ops = [arrays.ops[n] for n in arrays.op.tolist()]
    return sum(op.nbytes for op in ops if isinstance(op, Copy) and op.kind == kind)


def passes(job: cs.Job) -> dict[str, int]:
    """Bytes a step that the CPU reads and writes, by what for."""
    arrays = job.programs[0].arrays()
    found: dict[str, int] = {}
    for op in (arrays.ops[n] for n in arrays.op.tolist()):
        if isinstance(op, HostWork):
            found[op.name] = found.get(op.name, 0) + op.nbytes
    return found


@pytest.mark.parametrize("dp", [1, 2, 4])
def test_two_bytes_a_weight_cross_each_way(llama: Model, dp: int) -> None:
    job = job_of(llama, ZeroOffload(), dp=dp, zero=2)
    share = -(-llama.num_parameters // dp)
    assert crossing(job, "d2h") == crossing(job, "h2d") == 2 * share
    assert passes(job) == {"cpu adam": 28 * share}


def test_the_code_sends_four_bytes_and_goes_over_everything_again(llama: Model) -> None:
    job = job_of(llama, Zero2Offload())
    weights = llama.num_parameters
    assert crossing(job, "d2h") == 4 * weights
    assert crossing(job, "h2d") == 2 * weights
    assert passes(job) == {"scale gradients": 8 * weights, "cpu adam": 28 * weights, "cast weights": 6 * weights}


def test_each_rank_of_the_code_has_one_run_of_weights(llama: Model) -> None:
    """DeepSpeed pull request 1067: gradients are copied one rank at a time, unless ``round_robin_gradients`` is set."""
    whole = job_of(llama, Zero2Offload(), dp=4, zero=2, bucket_bytes=2)  # a block at a time, of one rank or two
    arrays = whole.programs[0].arrays()
    turns = {op.turns for op in arrays.ops if isinstance(op, Copy) and op.kind == "d2h"}
    assert min(turns) > 1.5
    assert max(turns) == 4
    even = job_of(llama, Zero2Offload(round_robin=True), dp=4, zero=2, bucket_bytes=2)
    assert {op.turns for op in even.programs[0].arrays().ops if isinstance(op, Copy)} == {1.0}
    assert crossing(whole, "d2h") == crossing(even, "d2h")


def test_temporaries_are_touched_and_not_pinned(llama: Model) -> None:
    job = job_of(llama, Zero2Offload(temporaries=True))
    arrays = job.programs[0].arrays()
    pageable = {op.kind for op in arrays.ops if isinstance(op, Copy) and op.pageable}
    assert pageable == {"h2d"}
    assert passes(job)["touch memory"] == 2 * llama.num_parameters


def test_memory_of_a_rank(llama: Model) -> None:
    """Two bytes of weights on the GPU; twelve of state and two of gradients on the host, the code's gradients four."""
    weights = llama.num_parameters
    paper = job_of(llama, ZeroOffload()).programs[0].arrays().resident
    assert paper["gpu/weights"] == 2 * weights
    assert paper["host_pinned/optimizer"] == 12 * weights
    assert paper["host_pinned/gradients"] == 2 * weights
    code = job_of(llama, Zero2Offload()).programs[0].arrays().resident
    assert code["host_pinned/gradients"] == 4 * weights
    assert code["host_pageable/optimizer"] == 12 * weights
    assert code["host_pinned/copies"] == 2 * weights


def run(policy: OffloadPolicy, *, num_layers: int, batch: int) -> cs.Result:
    """A few layers of the 10B model on one GPU of a V100 machine."""
    job = cs.training_step(
        replace(cs.load_model("zero-offload-10b"), num_layers=num_layers),
        cs.ParallelPlan(recompute="full", offload=policy),
        global_batch=batch,
        micro_batch=batch,
        seq_len=1024,
        dtype="fp16",
        num_devices=1,
    )
    return cs.simulate(cs.load_topology("dgx2-v100-1gpu"), job, steps=4)


def last_step(policy: OffloadPolicy) -> pd.DataFrame:
    trace = run(policy, num_layers=4, batch=2).trace
    return trace[trace["step"] == 3]


def test_a_tile_is_copied_while_the_next_is_updated() -> None:
    found = last_step(ZeroOffload())
    updates, copies = (found[found["name"] == name] for name in ("cpu adam", "bring weights"))
    assert len(updates) == len(copies) > 2
    for n in range(len(updates) - 1):
        assert copies["start_ns"].iloc[n] == updates["end_ns"].iloc[n] == updates["start_ns"].iloc[n + 1]


def test_the_code_overlaps_nothing_of_its_update() -> None:
    found = last_step(Zero2Offload())
    steps = [found[found["name"] == name] for name in ("scale gradients", "cpu adam", "cast weights", "bring weights")]
    assert [len(step) for step in steps] == [1, 1, 1, 1]
    for before, after in pairwise(steps):
        assert after["start_ns"].iloc[0] == before["end_ns"].iloc[0]


def test_the_delayed_update_hides_beside_the_next_step() -> None:
    """What the CPU takes is gone from the step, and only the copies of weights are left behind the passes."""
    waits, delayed = (cs.summary(run(ZeroOffload(delayed=delayed), num_layers=8, batch=8)) for delayed in (False, True))
    assert delayed["breakdown_s"]["host"] < 0.1 * waits["breakdown_s"]["host"]
    assert delayed["step_time_s"] >= delayed["breakdown_s"]["compute"]
    assert delayed["step_time_s"] < waits["step_time_s"] - 0.8 * waits["breakdown_s"]["host"]
