"""Which resources can bind."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from clustersim.engine.scene.live import find_live
from clustersim.engine.simulate import simulate
from clustersim.engine.system.build import build
from clustersim.hardware.roofline import roofline
from clustersim.topology.topology import Topology
from clustersim.workload.job import Job


def live(cluster: Topology, *jobs: Job, steps: int = 1, varying: tuple[str, ...] = ()) -> set[str]:
    """Names of the resources that stay."""
    system = build(cluster, jobs, roofline, [{}] * len(jobs))
    declared = [cluster.resources.find(name) for name in varying]
    rows = find_live(system, [steps] * len(jobs), declared).rows
    return set(cluster.resources.names(np.flatnonzero(rows)))


def message(star: ModuleType, source: int, destination: int) -> Any:
    ends = (("send", "out"), ("recv", "in"))
    programs = [star.program(star.collective(kind, 10_000, slot)) for kind, slot in ends]
    return star.job(*programs, families=(star.groups(("out", "in"), [0, 1]),), devices=[source, destination])


def test_one_message_binds_nowhere(star: ModuleType) -> None:
    """It takes its links' whole capacity and no more."""
    assert live(star.cluster(4, 1), message(star, 0, 1)) == set()


def test_two_messages_bind_where_they_meet(star: ModuleType) -> None:
    """Both leave by the same NIC and uplink; of two equal rows with equal users one is enough."""
    assert live(star.cluster(4, 1), message(star, 0, 1), message(star, 0, 2)) == {"nic0.tx"}
    assert live(star.cluster(4, 1, over=2.0), message(star, 0, 1), message(star, 0, 2)) == {"leaf0.up"}


def test_declared_resources_stay(star: ModuleType) -> None:
    assert live(star.cluster(4, 1), message(star, 0, 1), varying=("nic3.rx", "hbm2")) == {"nic3.rx", "hbm2"}


def two_streams(star: ModuleType) -> Job:
    """A sweep at half of the HBM's rate, then one at 60 % on another stream; nothing waits for that one."""
    p = star.program()
    first = p.add(star.gemm(1000, nbytes=500_000, name="first"), stream="main")
    p.add(star.gemm(1000, nbytes=600_000, name="second"), stream="side", after=[first])
    made: Job = star.job(p)
    return made


def test_ops_that_a_program_keeps_apart_do_not_add_up(star: ModuleType) -> None:
    assert live(star.cluster(1, 1), two_streams(star)) == set()


def test_ops_that_only_meet_in_the_next_step_add_up(star: ModuleType) -> None:
    """The second sweep of one step runs beside the first of the next: 110 % of the HBM."""
    assert live(star.cluster(1, 1), two_streams(star), steps=2) == {"hbm0"}
    run = simulate(star.cluster(1, 1), two_streams(star), steps=2)
    # equal shares of 1000 B/ns: the first gets all it asks for, the second 500 of 600 for 1000 ns; 100,000 B are left
    assert star.times(run, 0) == {"first": (1000, 2000), "second": (2167, 3167)}


def test_a_resource_with_one_more_user_than_another_stays(star: ModuleType) -> None:
    """Two GPUs copy on two streams each: what crosses each PCIe link crosses the DRAM too, but not the other way."""
    p = star.program(star.copy("d2h", 30_000), stream="a")
    p.add(star.copy("d2h", 30_000), stream="b")
    cluster = star.cluster(1, 2, dram=3e10, pcie=2e10)
    assert live(cluster, star.job(p, p)) == {"pcie0.down", "pcie1.down", "dram0"}
    run = simulate(cluster, star.job(p, p))
    assert [star.times(run, rank)["d2h"] for rank in (0, 1)] == [(0, 4000)] * 2


def test_a_resource_with_a_heavier_load_than_another_stays(star: ModuleType) -> None:
    """Each NIC carries half of what the uplink carries, which has 4/3 of a NIC's bandwidth: the uplink is tighter."""
    p = star.program(star.collective("all_reduce", 40_000, "a"), stream="a")
    p.add(star.collective("all_reduce", 40_000, "b"), stream="b")
    job = star.job(*[p] * 4, families=tuple(star.groups(slot, range(4)) for slot in ("a", "b")))
    cluster = star.cluster(2, 2, over=1.5)
    assert {"leaf0.up", "nic0.tx"} <= live(cluster, job)
    # 60,000 B of each leave a node, at 13.333333333 B/ns
    run = simulate(cluster, job)
    assert star.times(run, 0) == {"all_reduce": (0, 9001)}


def test_links_of_the_same_ranks_with_other_bytes_stay(star: ModuleType) -> None:
    """Both directions of a PCIe link have the same user; neither shields the other."""
    p = star.program()
    for k in range(2):
        p.add(star.copy("h2d", 10_000), stream=f"up {k}")
        p.add(star.copy("d2h", 30_000), stream=f"down {k}")
    cluster = star.cluster(1, 1).with_capacity({"pcie0.up": 0.5})
    assert live(cluster, star.job(p)) == {"pcie0.up", "pcie0.down"}
    run = simulate(cluster, star.job(p))
    assert star.times(run, 0) == {"h2d": (0, 2000), "d2h": (0, 3000)}


def test_the_fastest_collective_of_a_group_counts(star: ModuleType) -> None:
    """A small message is mostly latency; two large ones at once ask 14 B/ns of a NIC that carries 10."""
    p, q = (
        star.program(star.collective(kind, 10, slot), star.collective(kind, 100_000, slot))
        for kind, slot in (("send", "out"), ("recv", "in"))
    )
    family = star.groups(("out", "in"), [0, 1])
    jobs = [star.job(p, q, families=(family,), devices=[0, d]) for d in (1, 2)]
    assert live(star.cluster(4, 1, latency=1e-6), *jobs) == {"nic0.tx"}
