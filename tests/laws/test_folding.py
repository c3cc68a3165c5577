"""Folding is exact: the folded run gives every op of every rank the same start and end as the full run."""

from __future__ import annotations

import random
import subprocess
import sys
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustersim.engine.engine import Engine
from clustersim.engine.simulate import simulate
from clustersim.workload.job import GroupFamily, Job, Pool
from clustersim.workload.program import Program

LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(LAW, max_examples=100)
@given(data=st.data())
def test_folded_is_full(data: st.DataObject, cases: Any, times_of: Any) -> None:
    case = data.draw(cases(32))
    orders = [np.array(data.draw(st.permutations(range(job.num_ranks)))) for job in case.jobs]
    renumbered = case.renumbered(orders)
    full = renumbered.run(fold=False)
    folded = renumbered.run(fold=True, shuffle=random.Random(data.draw(st.integers(0, 9))).shuffle)
    for j, job in enumerate(case.jobs):
        for rank in range(job.num_ranks):
            assert times_of(folded, j, rank) == times_of(full, j, rank)
            one, other = (run.record.lanes[run.record.lane_of[j][rank]] for run in (folded, full))
            assert one.pooled.tolist() == other.pooled.tolist()
    assert len(folded.record.lanes) <= case.num_ranks == len(full.record.lanes)
    assert sum(lane.multiplicity for lane in folded.record.lanes) == case.num_ranks


@settings(LAW, max_examples=40)
@given(data=st.data())
def test_folded_is_full_while_links_change_and_jobs_end(data: st.DataObject, cases: Any, times_of: Any) -> None:
    case = data.draw(cases(32))
    names = case.topology.resources.names()
    varying = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    change = st.tuples(st.integers(0, 20_000), st.sampled_from(varying), st.sampled_from([0.1, 0.5, 1.0]))
    changes = data.draw(st.lists(change, max_size=4))
    launches = [data.draw(st.sampled_from([0, 0, 1500])) for _ in case.jobs]
    stop = data.draw(st.sampled_from([None, 4000]))
    capacity = case.topology.resources.capacity

    def behaviour(engine: Engine) -> None:
        for job, at in enumerate(launches):
            engine.launch(job, at)
        for at, name, factor in changes:
            new = factor * float(capacity[case.topology.resources.find(name)])
            engine.at(at, partial(Engine.set_capacity, name=name, capacity=new))
        if stop is not None:
            engine.at(stop, partial(Engine.cancel, job=0))

    full, folded = (case.run(fold=fold, behaviour=behaviour, varying=varying) for fold in (False, True))
    for j, job in enumerate(case.jobs):
        for rank in range(job.num_ranks):
            assert times_of(folded, j, rank) == times_of(full, j, rank)


@settings(LAW, max_examples=40)
@given(data=st.data())
def test_numbers_of_ranks_mean_nothing(data: st.DataObject, cases: Any, times_of: Any) -> None:
    """Where ranks share no pool: grants of one instant go by rank number."""
    case = data.draw(cases(32, shared_pools=False))
    orders = [np.array(data.draw(st.permutations(range(job.num_ranks)))) for job in case.jobs]
    one = case.run(fold=data.draw(st.booleans()))
    other = case.renumbered(orders).run(fold=data.draw(st.booleans()))
    for j, job in enumerate(case.jobs):
        for rank in range(job.num_ranks):
            assert times_of(other, j, int(orders[j][rank])) == times_of(one, j, rank)


@settings(LAW, max_examples=25)
@given(data=st.data())
def test_order_of_events_means_nothing(data: st.DataObject, cases: Any) -> None:
    case, fold = data.draw(cases(16)), data.draw(st.booleans())
    one = case.run(fold=fold)
    other = case.run(fold=fold, shuffle=random.Random(data.draw(st.integers(0, 99))).shuffle)
    for mine, theirs in zip(one.record.lanes, other.record.lanes, strict=True):
        for column in ("start_ns", "end_ns", "ready_ns", "cause_lane", "cause_op"):
            assert getattr(mine, column).tolist() == getattr(theirs, column).tolist()
        assert [one.record.bounds[k] for k in mine.bound] == [other.record.bounds[k] for k in theirs.bound]


def mesh_job(star: ModuleType, num_stages: int, dp: int, tp: int, **fields: Any) -> Job:
    """A pipeline of equal stages: 4 micro-batches forward and back, then gradients."""
    ranks = np.arange(num_stages * dp * tp).reshape(num_stages, dp, tp)
    programs = []
    for stage in range(num_stages):
        p = Program(f"stage {stage}")
        for _ in range(4):
            after = [p.add(star.collective("recv", 10_000, "in"), stream="in")] if stage else []
            p.add(star.gemm(2000, nbytes=100_000), stream="main", after=after)
            after = [p.add(star.collective("all_reduce", 20_000, "tp"), stream="main")]
            if stage < num_stages - 1:
                p.add(star.collective("send", 10_000, "out"), stream="out", after=after)
            p.add(star.copy("d2h", 9_000), stream="copy", after=after)
        p.add(star.collective("all_reduce", 100_000, "dp"), stream="main")
        programs.append(p)
    pairs = np.stack([ranks[:-1].reshape(-1), ranks[1:].reshape(-1)], axis=1)
    families = (
        star.groups("tp", *ranks.reshape(-1, tp)),
        star.groups("dp", *ranks.transpose(0, 2, 1).reshape(-1, dp)),
        GroupFamily(name="forward", members=pairs, slots=("out", "in")),
    )
    program_of = np.repeat(np.arange(num_stages), dp * tp)
    return Job(name="mesh", programs=tuple(programs), program_of=program_of, families=families, **fields)


@pytest.mark.parametrize(("num_stages", "dp", "tp"), [(2, 8, 4), (4, 4, 8), (1, 16, 4)])
def test_a_symmetric_cluster_has_one_class_a_stage(star: ModuleType, num_stages: int, dp: int, tp: int) -> None:
    """Leaves that hold one stage or part of one, so that nothing but the stage tells ranks apart."""
    cluster = star.cluster(num_stages * dp * tp // 8, 8, leaf=dp * tp // 8, over=2.0)
    run = simulate(cluster, mesh_job(star, num_stages, dp, tp))
    assert [lane.multiplicity for lane in run.record.lanes] == [dp * tp] * num_stages


def test_folded_is_full_on_1024_ranks_with_all_that_breaks_symmetry(star: ModuleType, times_of: Any) -> None:
    job = mesh_job(star, 4, 32, 8)
    gpu_of = np.repeat(np.arange(128) % 32 == 5, 8)
    cluster = star.cluster(128, 8, leaf=4, over=2.0, gpus=(star.CARD, star.SLOW_CARD), gpu_of=gpu_of)
    perturb = {"slow_ranks": {300: 1.5}, "slow_links": {"nic700.tx": 0.5}}
    full = simulate(cluster, job, fold=False, perturb=perturb)
    folded = simulate(cluster, job, perturb=perturb)
    assert all(times_of(folded, 0, rank) == times_of(full, 0, rank) for rank in range(1024))
    assert len(folded.record.lanes) < 300


def test_contenders_for_a_pool_are_different_classes(star: ModuleType, times_of: Any) -> None:
    p = Program()
    p.add(star.copy("d2h", 1000), stream="copy", takes={"slot": 1}, gives={"slot": 1})
    pools = {"slot": Pool(capacity=1, scope="node")}
    job = Job(name="pool", programs=(p,), program_of=np.zeros(16, np.int64), pools=pools)
    run = simulate(star.cluster(4, 4), job)
    assert [lane.multiplicity for lane in run.record.lanes] == [4] * 4
    assert [times_of(run, 0, rank)[1] for rank in range(4)] == [[50], [100], [150], [200]]


def test_a_slow_memory_that_only_collectives_use_is_told_apart(star: ModuleType, times_of: Any) -> None:
    """All-reduces over NVLink and over NICs at once ask 400 + 600 B/ns of each HBM; one GPU has 700."""
    p = star.program(star.collective("all_reduce", 100_000, "tp"), stream="tp")
    p.add(star.collective("all_reduce", 100_000, "dp"), stream="dp")
    families = (
        star.groups("tp", [0, 1], [2, 3], [4, 5], [6, 7]),
        star.groups("dp", [0, 2], [1, 3], [4, 6], [5, 7]),
    )
    job = star.job(*[p] * 8, families=families)
    perturb = {"slow_links": {"hbm7": 0.7}}
    cluster = star.cluster(4, 2, nic=1e11)
    full, folded = (simulate(cluster, job, fold=fold, perturb=perturb) for fold in (False, True))
    assert all(times_of(folded, 0, rank) == times_of(full, 0, rank) for rank in range(8))
    assert times_of(folded, 0, 0) == ([0, 0], [1000, 1000])
    assert min(times_of(folded, 0, 7)[1]) > 1000


def test_the_root_of_a_gather_is_told_apart_by_its_memory(star: ModuleType, times_of: Any) -> None:
    """It moves more through its HBM than the others do, which slows the sweep beside it; the links are never short."""
    p = star.program(star.sweep(2000))
    p.add(star.collective("gather", 80_000), stream="dp")
    job = star.job(*[p] * 4, families=(star.groups("dp", range(4)),))
    full, folded = (simulate(star.cluster(1, 4), job, fold=fold) for fold in (False, True))
    assert all(times_of(folded, 0, rank) == times_of(full, 0, rank) for rank in range(4))
    assert times_of(folded, 0, 0)[1][0] > times_of(folded, 0, 1)[1][0] > 2000


def test_the_full_run_imports_nothing_of_folding() -> None:
    script = """
import sys
import numpy as np
from clustersim import Delay, Job, Program, simulate
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU, Efficiency
from clustersim.topology.resources import ResourceTable
from clustersim.topology.topology import Topology

p = Program()
p.add(Delay(name="delay", kind="delay", measured_ns=5), stream="main")
one = np.zeros(1, np.int64)
efficiency = Efficiency(gemm_peak=1, gemm_half_flops=0, attention_peak=1, attention_half_flops=0, memory_peak=1,
                        memory_half_bytes=0)
gpu = GPU(name="gpu", memory_bytes=1, memory_bandwidth=1, tensor_flop_per_s={}, vector_flop_per_s=1, num_sms=1,
          launch_latency=1, efficiency=efficiency)
cpu = CPU(name="cpu", num_cores=1, memory_bytes=1, memory_bandwidth=1, vector_flop_per_s=1)
cluster = Topology(name="one", gpus=(gpu,), gpu_of=one, node_of=one, cpus=(cpu,), cpu_of=one,
                   resources=ResourceTable(()), router=None, local={})
run = simulate(cluster, Job(name="job", programs=(p,), program_of=one), fold=False)
assert run.record.lanes[0].end_ns.tolist() == [5]
run.usage
found = {name for name in sys.modules if name.startswith("clustersim.engine")}
print(*sorted(found & {"clustersim.engine.scene.fold", "clustersim.engine.scene.refine"}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
