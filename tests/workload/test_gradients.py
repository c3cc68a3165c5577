"""When gradients are reduced and weights gathered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clustersim.workload.arrays import Arrays
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.training_step import training_step


def program(model: Model, stage: int = 0, **plan: Any) -> Arrays:
    plan = {"dp": 4, "bucket_bytes": 4 * 200_000} | plan
    job = training_step(model, ParallelPlan(**plan), global_batch=48, micro_batch=1, seq_len=128)
    return job.programs[stage].arrays()


def called(arrays: Arrays, name: str) -> list[int]:
    return [n for n, k in enumerate(arrays.op) if arrays.ops[k].name == name]


def before(arrays: Arrays, op: int) -> list[int]:
    return arrays.edges[arrays.edges[:, 1] == op, 0].tolist()


@pytest.mark.parametrize("plan", [{}, {"pp": 2}, {"pp": 2, "vpp": 2}])
def test_a_bucket_goes_once_the_last_micro_batch_has_passed_it(llama: Model, plan: dict[str, Any]) -> None:
    arrays = program(llama, **plan)
    reductions = called(arrays, "all-reduce gradients")
    assert len(reductions) > 2
    for op in reductions:
        (cause,) = [n for n in before(arrays, op) if arrays.streams[arrays.stream[n]] == "compute"]
        assert arrays.phases[arrays.phase[cause]] == "backward"
        # Nothing of this chunk's layer is left to do for any other micro-batch.
        later = np.arange(cause + 1, len(arrays))
        same = (arrays.layer[later] == arrays.layer[cause]) & (arrays.layer[later] >= 0)
        assert not (same & (arrays.micro_batch[later] != arrays.micro_batch[cause])).any()
    # All but the last leave while the backward pass goes on.
    last_compute = max(n for n in range(len(arrays)) if arrays.micro_batch[n] >= 0)
    assert min(max(before(arrays, op)) for op in reductions) < last_compute


def test_without_overlap_one_bucket_goes_when_all_is_done(llama: Model) -> None:
    arrays = program(llama, overlap_dp=False, bucket_bytes=None)
    (op,) = called(arrays, "all-reduce gradients")
    assert before(arrays, op) == [max(n for n in range(len(arrays)) if arrays.micro_batch[n] >= 0)]


def test_without_overlap_the_backward_pass_waits_for_the_buckets_of_each_micro_batch(llama: Model) -> None:
    for beside in (True, False):
        arrays = program(llama, zero=2, overlap_dp=beside)
        *reductions, _ = called(arrays, "reduce-scatter gradients")
        assert len(reductions) > 2 * 12
        kernels = np.array([arrays.streams[k] == "compute" for k in arrays.stream])
        after = [op + 1 + int(kernels[op + 1 :].argmax()) for op in reductions]
        waits = [op in before(arrays, kernel) for op, kernel in zip(reductions, after, strict=True)]
        assert not any(waits) if beside else all(waits)


def test_the_update_waits_for_every_reduction(gpt: Model) -> None:
    arrays = program(gpt, pp=2, tp=2)
    (update,) = called(arrays, "adam")
    waits = set(before(arrays, update))
    for name in ("all-reduce gradients", "all-reduce norm gradients", "all-reduce embedding gradients"):
        assert set(called(arrays, name)) & waits
    assert set(called(arrays, "all-reduce gradients")) <= waits


def test_gathered_weights_hold_up_their_first_use_in_the_next_step(llama: Model) -> None:
    arrays = program(llama, zero=1)
    gathers = called(arrays, "all-gather weights")
    (update,) = called(arrays, "adam")
    assert arrays.carries[:, 0].tolist() == gathers
    assert all(update in before(arrays, op) for op in gathers)
    used = arrays.carries[:, 1].tolist()
    assert used == sorted(used)
    assert {arrays.phases[arrays.phase[n]] for n in used} == {"forward"}
    assert {arrays.micro_batch[n] for n in used} == {0}
    assert used[0] == 0


def test_without_overlap_the_next_step_waits_for_all(llama: Model) -> None:
    arrays = program(llama, zero=1, pp=2, vpp=2, overlap_dp=False, bucket_bytes=None)
    gathers = called(arrays, "all-gather weights")
    assert len(gathers) == 2
    ((last, first),) = arrays.carries.tolist()
    assert last == gathers[-1]
    assert arrays.micro_batch[first] == 0


def test_ddp_gathers_nothing(llama: Model) -> None:
    arrays = program(llama)
    assert called(arrays, "all-gather weights") == []
    assert len(arrays.carries) == 0


def test_buckets_are_padded_for_sharding_only(llama: Model) -> None:
    whole, split = program(llama, dp=3, zero=0), program(llama, dp=3, zero=1)
    sizes = {
        name: [arrays.ops[arrays.op[n]].nbytes for n in called(arrays, name)]
        for arrays, name in ((whole, "all-reduce gradients"), (split, "reduce-scatter gradients"))
    }
    exact, padded = sizes["all-reduce gradients"], sizes["reduce-scatter gradients"]
    assert all(n % 12 == 0 for n in padded)
    assert all(0 <= p - e < 12 for p, e in zip(padded, exact, strict=True))
    assert padded != exact
