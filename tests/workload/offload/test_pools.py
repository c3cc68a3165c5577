"""Pools of offloading: those that ops take."""

from __future__ import annotations

import clustersim as cs
from clustersim.workload.offload import OffloadPolicy, ZeroInfinity, ZeroOffload


def job_of(policy: OffloadPolicy) -> cs.Job:
    plan = cs.ParallelPlan(zero=3, recompute="full", offload=policy)
    return cs.training_step(
        cs.load_model("llama-3.2-1b"), plan, global_batch=4, micro_batch=1, seq_len=512, num_devices=4
    )


def test_locks_of_drives_that_nothing_is_on_do_not_tell_ranks_apart() -> None:
    locked = job_of(ZeroOffload(lock=True))
    assert not locked.pools
    assert cs.summary(cs.simulate(cs.load_topology("jlse-h100"), locked))["num_classes"] == 1


def test_drives_that_are_used_have_buffers_and_locks() -> None:
    found = {name: pool.capacity for name, pool in job_of(ZeroInfinity(lock=True, buffers=5)).pools.items()}
    assert found == {"nvme buffers": 5, "nvme read lock": 1, "nvme write lock": 1}
