"""Intervals and coverage: what must hold of every run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_table import KernelTable, TimedKernel

LAW = settings(deadline=None, max_examples=5)

H100 = cs.load_topology("dgx-h100", nodes=1)
MODEL = cs.load_model("gpt2")


def step(**plan: Any) -> cs.Job:
    return cs.training_step(MODEL, cs.ParallelPlan(**plan), global_batch=8, micro_batch=1, seq_len=256)


PLANS = st.sampled_from(
    [{"dp": 8}, {"dp": 4, "tp": 2}, {"dp": 2, "pp": 2, "tp": 2}, {"dp": 8, "zero": 3}, {"dp": 4, "cp": 2}]
)


def own(topology: cs.Topology, source: str) -> cs.Topology:
    """The cluster with GPUs whose kernel numbers come from ``source``."""
    gpus = tuple(replace(gpu, sources={**gpu.sources, "kernels": source}) for gpu in topology.gpus)
    return replace(topology, gpus=gpus)


@LAW
@given(plan=PLANS)
def test_an_interval_holds_the_time_and_coverage_sums_to_one(plan: dict[str, Any]) -> None:
    run = cs.simulate(H100, step(**plan))
    found = cs.summary(run)
    low, high = found["step_time_interval_s"]
    assert 0 < low <= found["step_time_s"] <= high
    assert sum(found["coverage"].values()) == pytest.approx(1, abs=1e-12)
    assert run.coverage == found["coverage"]
    missing = run.coverage.missing
    shares = [row["share"] for rows in missing.values() for row in rows]
    assert sum(shares) <= 1 + 1e-9
    assert all(row["provenance"] != "measured" for rows in missing.values() for row in rows)
    assert all(list(rows) == sorted(rows, key=lambda row: -row["share"]) for rows in missing.values())


@LAW
@given(plan=PLANS)
def test_a_borrowed_device_is_less_sure(plan: dict[str, Any]) -> None:
    job = step(**plan)
    found = {}
    for source in ("measured: on such a device", "assumed: as on h100-sxm"):
        answer = cs.summary(cs.simulate(own(H100, source), job))
        low, high = answer["step_time_interval_s"]
        found[source.split(":")[0]] = (answer["step_time_s"], high / low, answer["coverage"]["assumed"])
    assert found["assumed"][0] == found["measured"][0]
    assert found["assumed"][1] > found["measured"][1]
    assert found["assumed"][2] > found["measured"][2]


@LAW
@given(plan=PLANS)
def test_folding_changes_nothing(plan: dict[str, Any]) -> None:
    folded, full = (cs.summary(cs.simulate(H100, step(**plan), fold=fold)) for fold in (True, False))
    assert folded["step_time_interval_s"] == pytest.approx(full["step_time_interval_s"], rel=1e-9)
    assert folded["coverage"] == full["coverage"]
    assert folded["coverage_missing"] == full["coverage_missing"]


def test_with_a_table_of_all_its_kernels_all_is_measured() -> None:
    job = cs.training_step(MODEL, cs.ParallelPlan(dp=1), global_batch=1, micro_batch=1, seq_len=256)
    gpu = H100.gpus[0]
    kernels = {
        replace(kernel, count=1)
        for program in job.programs
        for op in program.arrays().ops
        if isinstance(op, cs.Compute)
        for kernel in op.kernels
    }
    rows = [TimedKernel(device=gpu.name, kernel=k, seconds=kernel_cost(k, gpu).seconds) for k in kernels]
    before = cs.summary(cs.simulate(H100, job))
    run = cs.simulate(H100, job, cost=KernelTable(rows=rows))
    after = cs.summary(run)
    assert run.coverage["measured"] == pytest.approx(1)
    assert run.coverage.missing == {"kernels": [], "collectives": []}
    low, high = after["step_time_interval_s"]
    assert high / low < before["step_time_interval_s"][1] / before["step_time_interval_s"][0]
