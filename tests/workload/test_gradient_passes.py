"""Passes over all gradients before they are reduced."""

from __future__ import annotations

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.hardware.kernel import Kernel
from clustersim.workload.gradient_passes import GRADIENT_PASSES, gradient_passes
from clustersim.workload.model import Model
from clustersim.workload.op import Compute


def update_kernels(model: Model, *, batch: int = 8, **plan: object) -> list[Kernel]:
    job = cs.training_step(
        model,
        cs.ParallelPlan(**plan),
        global_batch=batch,
        micro_batch=1,
        seq_len=128,
        dtype="bf16",  # type: ignore[arg-type]
    )
    (program, *_) = job.programs
    ops = [op for op in program.arrays().ops if isinstance(op, Compute) and op.category == "optimizer"]
    return [kernel for op in ops for kernel in op.kernels]


def moved(model: Model, **plan: object) -> int:
    return sum(kernel.nbytes * kernel.count for kernel in update_kernels(model, **plan))


def test_an_average_reads_and_writes_and_a_check_reads() -> None:
    assert [kernel.nbytes for kernel in gradient_passes(("average", "check"), 400, replicas=2)] == [800, 400]
    assert [kernel.nbytes for kernel in gradient_passes(("average", "check"), 400, replicas=1)] == [400]
    assert gradient_passes((), 400, replicas=2) == ()


@pytest.mark.parametrize("zero", [0, 1])
@pytest.mark.parametrize("launch", ["none", "modules"])
def test_they_go_over_whole_gradients_whatever_is_split(gpt: Model, zero: int, launch: str) -> None:
    plan = {"dp": 4, "zero": zero, "gradient_dtype": "fp32", "launch": launch, "wait_norm": launch != "none"}
    extra = moved(gpt, gradient_passes=GRADIENT_PASSES, **plan) - moved(gpt, **plan)
    assert extra == 12 * gpt.num_parameters


def test_a_rank_alone_has_nothing_to_average(gpt: Model) -> None:
    plan = cs.ParallelPlan(dp=1, gradient_passes=("average",))
    job = cs.training_step(gpt, plan, global_batch=1, micro_batch=1, seq_len=128)
    assert moved(gpt, dp=1, batch=1, gradient_passes=("average",)) == moved(gpt, dp=1, batch=1)
    assert any(note.startswith("plan.gradient_passes: average has no effect") for note in job.notes)


@pytest.mark.parametrize("given", [{"zero": 3}, {"zero": 2}, {"fsdp": True}])
def test_gradients_that_are_split_have_none(gpt: Model, given: dict[str, object]) -> None:
    with pytest.raises(BadInput) as caught:
        update_kernels(gpt, dp=4, gradient_passes=("check",), **given)
    assert [fault.key for fault in caught.value.faults] == ["plan.gradient_passes"]
