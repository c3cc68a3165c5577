"""Time of ops by what bound them."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from clustersim.analysis import bounds
from clustersim.engine.simulate import simulate
from clustersim.trace.result import Result
from clustersim.workload.job import Job


def reduction(star: ModuleType, name: str, devices: list[int]) -> Job:
    """Two ranks compute for 1000 ns and add up 60,000 B."""
    programs = [star.program(star.gemm(1000), star.collective("all_reduce", 60_000))] * 2
    job: Job = star.job(*programs, name=name, families=(star.groups("dp", [0, 1]),))
    return replace(job, devices=np.array(devices))


@pytest.fixture
def two_jobs(star: ModuleType) -> Result:
    """Nodes of one GPU, two below each leaf, whose uplink carries half of their 10 B/ns ports."""
    cluster = star.cluster(4, 1, leaf=2, over=2)
    return simulate(cluster, [reduction(star, "first", [0, 2]), reduction(star, "second", [1, 3])])


def test_two_jobs_are_bound_by_the_link_they_share(two_jobs: Result) -> None:
    """Each puts 60,000 B on an uplink of 10 B/ns: 6000 ns alone, 12,000 together."""
    table = bounds(two_jobs.trace)
    assert table["run"].tolist() == ["first", "first", "second", "second"]
    assert table["bound"].tolist() == ["leaf0.up", "tensor"] * 2
    assert table["num_ops"].tolist() == [2] * 4
    assert table["seconds"].tolist() == pytest.approx([12e-6, 1e-6] * 2)
    assert table["fraction"].tolist() == pytest.approx([12 / 13, 1 / 13] * 2)


def test_alone_a_job_is_bound_by_its_own_busiest_link(star: ModuleType) -> None:
    table = bounds(simulate(star.cluster(4, 1, leaf=2, over=2), reduction(star, "first", [0, 2])).trace)
    assert table["bound"].tolist() == ["nic0.tx", "tensor"]
    assert table["seconds"].tolist() == pytest.approx([6e-6, 1e-6])


def test_ranks_count_with_their_multiplicity(star: ModuleType) -> None:
    """Three ranks of one class and a slow one: (3 · 1000 + 2000)/4 ns a rank."""
    job = star.job(*[star.program(star.gemm(1000))] * 4)
    run = simulate(star.cluster(1, 4), job, perturb={"slow_ranks": {3: 2.0}})
    row = bounds(run.trace).iloc[0]
    assert (row["num_ops"], row["seconds"], row["fraction"]) == (4, pytest.approx(1.25e-6), pytest.approx(0.625))
    assert bounds(run.trace.iloc[:0]).empty
