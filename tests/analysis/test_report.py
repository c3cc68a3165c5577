"""The title of a report says how replicas divide what they hold, a line how long GPUs wait for their hosts."""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs
from clustersim.analysis.report import report
from clustersim.workload.sharding import Sharding, zero


def half_way(ranks: int) -> Sharding:
    return zero(ranks, stage=2, weight=2, gradient=4)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({}, "zero 0"),
        ({"zero": 2}, "zero 2"),
        ({"fsdp": True}, "fsdp"),
        ({"fsdp": True, "hsdp": 4}, "fsdp over 4"),
        ({"zero": 3, "hsdp": 4}, "zero 3 over 4"),
        ({"zero": 3, "zeropp": ("qwz", "hpz"), "zeropp_ranks": 4}, "zero 3 with qwz, hpz"),
        ({"sharding": half_way}, "half_way"),
        ({"sync_every": 10, "sync_ranks": 4, "zero": 1}, "zero 1, exchange every 10 steps"),
    ],
)
def test_sharding(plan: dict[str, Any], words: str) -> None:
    job = cs.training_step(
        cs.load_model("gpt2"), cs.ParallelPlan(dp=8, **plan), global_batch=8, micro_batch=1, seq_len=128
    )
    cluster = cs.load_topology("dgx-h100", nodes=1)
    text = report(cs.summary(cs.simulate(cluster, job)), cluster)
    assert text.splitlines()[1] == f"dp 8; 1f1b, {words}, recompute none"


def test_a_host_that_is_late_has_a_line() -> None:
    cluster = cs.load_topology("dgx-h100", nodes=1)

    def lines(**plan: Any) -> list[str]:
        whole = cs.ParallelPlan(dp=8, **plan)
        job = cs.training_step(cs.load_model("gpt2"), whole, global_batch=8, micro_batch=1, seq_len=128)
        told = report(cs.summary(cs.simulate(cluster, job)), cluster).splitlines()
        return [line for line in told if line.strip().startswith("host")]

    assert lines() == []
    (line,) = lines(launch="eager")
    assert 0 < float(line.split()[1]) < 100
