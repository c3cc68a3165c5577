"""The attention kernel that a plan names, and a table of one's own, reach the clock."""

from __future__ import annotations

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_table import KernelTable, TimedKernel
from clustersim.library import load_part

MODEL = cs.load_model("llama-3.2-1b")
H100 = cs.load_topology("dgx-h100", nodes=1)


def step(attention: str) -> cs.Job:
    plan = cs.ParallelPlan(tp=1, pp=1, dp=8, attention=attention)
    return cs.training_step(MODEL, plan, global_batch=8, micro_batch=1, seq_len=8192)


def test_a_faster_attention_kernel_makes_a_faster_step() -> None:
    times = {name: cs.summary(cs.simulate(H100, step(name)))["step_time_s"] for name in ("flash-2", "flash-3", "flash")}
    assert times["flash-3"] < times["flash-2"]
    assert times["flash"] < times["flash-2"]


def test_a_kernel_that_the_device_lacks_is_refused() -> None:
    with pytest.raises(BadInput, match="no attention kernel flash-3"):
        cs.simulate(cs.load_topology("dgx-a100", nodes=1), step("flash-3"))


def test_own_measurements_come_first() -> None:
    job = step("flash")
    kernels = {k for role in job.programs for op in role.arrays().ops if isinstance(op, cs.Compute) for k in op.kernels}
    product = max((k for k in kernels if k.kind == "gemm" and k.count == 1), key=lambda k: (k.flops, k.nbytes))
    gpu = load_part("gpu", "h100-sxm")
    slow = TimedKernel(device=gpu.name, kernel=product, seconds=1000 * kernel_cost(product, gpu).seconds)
    found = cs.summary(cs.simulate(H100, job, cost=KernelTable(rows=[slow])))
    assert found["step_time_s"] > cs.summary(cs.simulate(H100, job))["step_time_s"]
    assert found["coverage"]["measured"] > 0.5
