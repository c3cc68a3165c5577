"""What limits the host's work, as the summary tells it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import clustersim as cs
from clustersim.analysis.host_bounds import host_bounds_s
from clustersim.workload.offload import OffloadPolicy, ZeroOffload

POLICY = ZeroOffload()


def run(policy: OffloadPolicy | None) -> cs.Result:
    plan = cs.ParallelPlan(zero=2, dp=4, gradient_dtype="bf16", offload=policy)
    job = cs.training_step(
        cs.load_model("llama-3.2-1b"), plan, global_batch=4, micro_batch=1, seq_len=512, num_devices=4
    )
    return cs.simulate(cs.load_topology("polaris"), job)


def test_ranks_that_share_a_socket_are_bound_by_its_memory_one_thread_by_itself() -> None:
    many, one = (cs.summary(run(each))["host_bounds_s"] for each in (POLICY, replace(POLICY, update_threads=1)))
    assert next(iter(many)) == "dram"
    assert next(iter(one)) == "cores"


def test_it_is_the_time_of_the_hosts_ops() -> None:
    result = run(POLICY)
    trace, found = result.trace, cs.summary(result)["host_bounds_s"]
    last = trace[(trace["category"].astype(str) == "host") & (trace["step"] == trace["step"].max())]
    took = (last["end_ns"] - last["start_ns"]) * last["multiplicity"] / 1e9 / 4
    assert sum(found.values()) == pytest.approx(took.sum(), rel=1e-6)


def test_nothing_where_nothing_is_offloaded_or_no_step_was_made() -> None:
    assert cs.summary(run(None))["host_bounds_s"] is None
    record = run(POLICY).record
    assert host_bounds_s(record.lanes, record.bounds, np.empty(0, np.int64)) is None


def test_the_report_names_it() -> None:
    assert "of the host's work is bound by dram" in str(cs.summary(run(POLICY)))
