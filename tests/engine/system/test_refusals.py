"""What a run refuses, before the clock starts: every fault with its key, its rule and the nearest legal value."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clustersim.engine.limits import Limits
from clustersim.engine.perturb import Perturbation
from clustersim.engine.simulate import simulate
from clustersim.faults import BadInput
from clustersim.hardware.kernel import Kernel
from clustersim.topology.resources import Block, ResourceTable
from clustersim.topology.topology import Topology
from clustersim.workload.job import GroupFamily, Job, Pool
from clustersim.workload.op import Compute
from clustersim.workload.program import Program


def refused(cluster: Topology, jobs: Any, **options: Any) -> list[str]:
    with pytest.raises(BadInput) as caught:
        simulate(cluster, jobs, **options)
    return [fault.key for fault in caught.value.faults]


@pytest.fixture
def cluster(star: ModuleType) -> Topology:
    made: Topology = star.cluster(2, 2)
    return made


def test_nothing_to_run(star: ModuleType, cluster: Topology) -> None:
    assert refused(cluster, []) == ["jobs"]
    assert refused(cluster, star.job(Program())) == ["job"]
    assert refused(cluster, star.job(star.program(star.gemm(1))), steps=0) == ["steps"]
    assert refused(cluster, star.job(star.program(star.gemm(1))), steps=1.5) == ["steps"]


def test_less_than_nothing_to_do(star: ModuleType, cluster: Topology) -> None:
    ops = [star.delay(-1), star.gemm(-1), star.copy("d2h", -1), star.drive("nvme_read", -1), star.host(-1)]
    assert refused(cluster, star.job(star.program(*ops))) == [
        "program.delay.measured_ns",
        "program.gemm.flops",
        "program.d2h.nbytes",
        "program.nvme_read.nbytes",
        "program.adam.nbytes",
    ]


def test_pools(star: ModuleType, cluster: Topology) -> None:
    p = Program("role")
    p.add(star.gemm(1), stream="main", takes={"pined": 1}, gives={"pinned": -1})
    job = star.job(p, pools={"pinned": Pool(capacity=1)})
    with pytest.raises(BadInput, match="'pined' must be a pool of job; nearest: pinned") as caught:
        simulate(cluster, job)
    assert sorted(fault.key for fault in caught.value.faults) == ["role.pinned", "role.pools"]


def test_placement(star: ModuleType, cluster: Topology) -> None:
    p = star.program(star.gemm(1))
    assert refused(cluster, star.job(*[p] * 5)) == ["job.num_ranks"]
    assert refused(cluster, star.job(p, devices=[4])) == ["job.devices"]
    assert refused(cluster, star.job(p, devices=[0, 1])) == ["job.devices"]
    assert refused(cluster, Job(name="job", programs=(p,), program_of=np.array([0, 1]))) == ["job.program_of"]


def test_groups(star: ModuleType, cluster: Topology) -> None:
    p = star.program(star.collective("all_reduce", 100))
    assert "program.dp" in refused(cluster, star.job(p, p))
    assert "job.families.dp" in refused(cluster, star.job(p, p, families=(star.groups("dp", [0, 2]),)))
    other = star.program(star.collective("all_reduce", 200))
    assert refused(cluster, star.job(p, other, families=(star.groups("dp", [0, 1]),))) == ["group dp/dp/0"]


def test_what_the_hardware_has_not(star: ModuleType, cluster: Topology) -> None:
    bare = replace(cluster, local={"hbm": cluster.local["hbm"]})
    assert refused(bare, star.job(star.program(star.drive("nvme_read", 10)))) == ["nvme_read.kind"]
    kernel = Kernel(kind="gemm", dtype="fp8", flops=1, nbytes=1)
    fp8 = Compute(name="mlp", kind="mlp", kernels=(kernel,))
    with pytest.raises(BadInput, match="gpu has no fp8 matrix units, only bf16"):
        simulate(cluster, star.job(star.program(fp8)))


def test_perturbations_and_limits(star: ModuleType, cluster: Topology) -> None:
    job = star.job(star.program(star.gemm(1)))
    assert refused(cluster, job, perturb={"slow_rank": {0: 2}}) == ["perturb.slow_rank"]
    assert refused(cluster, job, perturb={"slow_ranks": {7: 2.0}}) == ["perturb.slow_ranks"]
    assert refused(cluster, job, perturb={"slow_links": {"nic0.ty": 0.5}}) == ["perturb.slow_links"]
    for ranks in ({0.5: 2.0}, {True: 2.0}, {"x": 2.0}, {0: True}, {0: "2"}, {0: float("nan")}):
        assert refused(cluster, job, perturb={"slow_ranks": ranks}) == [f"perturb.slow_ranks.{next(iter(ranks))}"]
    for links in ("nic0.tx", 5, [5]):
        assert refused(cluster, job, perturb={"failed_links": links}) == ["perturb.failed_links"]
    limits = {"simulated": 1, "wall_s": -1, "num_events": True}
    assert refused(cluster, job, limits=limits) == [f"limits.{name}" for name in limits]


@pytest.mark.parametrize("limits", [{"num_events": -1}, {"simulated_s": float("nan")}, {"wall_s": -0.5}])
def test_limits_are_not_negative(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        Limits(**limits)


def test_all_faults_at_once(star: ModuleType, cluster: Topology) -> None:
    jobs = [star.job(star.program(op)) for op in (star.delay(-1), star.copy("h2d", -5))]
    assert refused(cluster, jobs, perturb={"slow_ranks": {7: 2.0}}) == [
        "program.delay.measured_ns",
        "program.h2d.nbytes",
        "perturb.slow_ranks",
    ]


def test_members_of_a_group_on_one_device(star: ModuleType, cluster: Topology) -> None:
    program = star.program(star.collective("all_reduce", 10, slot="g"))
    family = GroupFamily(name="g", members=np.array([[0, 1]]), slots=("g",))
    job = Job(
        name="job", programs=(program,), program_of=np.array([0, 0]), families=(family,), devices=np.array([1, 1])
    )
    assert refused(cluster, job) == ["job.families.g"]
    simulate(cluster, replace(job, devices=np.array([1, 2])))


def test_no_capacity_is_too_large_for_whole_numbers(star: ModuleType, cluster: Topology) -> None:
    job = star.job(star.program(star.gemm(1)))
    assert refused(cluster, job, perturb={"slow_links": {"nic0.tx": 1e12}}) == ["perturb.slow_links"]
    assert refused(cluster, job, perturb={"slow_links": {"nic0.ty": 1}, "failed_links": ["nic1.ty"]}) == [
        "perturb.slow_links",
        "perturb.failed_links",
    ]
    with pytest.raises(ValueError, match="at most 1e"):
        ResourceTable([Block(kind="nic", shape=(1,), capacity=1e19, latency=0.0, label="nic{}")])


@pytest.mark.parametrize(
    ("key", "factor", "nearest"),
    [("slow_ranks", 1e12, 1e6), ("slow_ranks", 1e18, 1e6), ("slow_ranks", 1e-30, 1e-6), ("slow_links", 1e-30, 1e-6)],
)
def test_factors_that_no_clock_holds(key: str, factor: float, nearest: float) -> None:
    with pytest.raises(BadInput) as caught:
        Perturbation.parse({key: {"3": factor}})
    (fault,) = caught.value.faults
    assert (fault.key, fault.nearest) == (f"perturb.{key}.3", nearest)
    Perturbation.parse({key: {"3": fault.nearest}})
