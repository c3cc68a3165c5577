"""Uplinks above ports that cannot fill them are not watched; others are."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from clustersim.engine.scene.live import find_live
from clustersim.engine.simulate import simulate
from clustersim.engine.system.build import build
from clustersim.hardware.roofline import roofline
from clustersim.topology.topology import Topology
from clustersim.workload.job import Job


def live(cluster: Topology, jobs: list[Job], varying: tuple[str, ...] = ()) -> set[str]:
    system = build(cluster, jobs, roofline, [{}] * len(jobs))
    declared = [cluster.resources.find(name) for name in varying]
    return set(cluster.resources.names(np.flatnonzero(find_live(system, [1] * len(jobs), declared).rows)))


def messages(star: ModuleType) -> list[Job]:
    """From each node of the first leaf to each of the second: four through each leaf, two through each port."""
    ends = (("send", "out"), ("recv", "in"))
    programs = [star.program(star.collective(kind, 10_000, slot)) for kind, slot in ends]
    family = star.groups(("out", "in"), [0, 1])
    return [star.job(*programs, families=(family,), devices=[a, b]) for a in (0, 1) for b in (2, 3)]


PORTS = {"nic0.tx", "nic1.tx", "nic2.rx", "nic3.rx"}


def test_an_uplink_that_its_ports_cannot_fill_is_not_watched(star: ModuleType) -> None:
    assert live(star.cluster(4, 1, leaf=2), messages(star)) == PORTS


def test_an_uplink_narrower_than_its_ports_stays(star: ModuleType) -> None:
    """At 15 of 20 B/ns it is wider than one port and narrower than both; the other leaf has the same users."""
    assert live(star.cluster(4, 1, leaf=2, over=4 / 3), messages(star)) == {*PORTS, "leaf0.up"}


def test_a_port_that_may_grow_shields_nothing(star: ModuleType) -> None:
    assert "leaf0.up" in live(star.cluster(4, 1, leaf=2), messages(star), varying=("nic0.tx",))


def test_ports_of_others_shield_nothing(star: ModuleType) -> None:
    """What two nodes of one leaf send is proved by their own ports; a third, unused, adds no bandwidth to them."""
    cluster = star.cluster(6, 1, leaf=3, over=2.0)  # 15 B/ns above three ports of 10 B/ns
    jobs = messages(star)
    moved = [
        star.job(*job.programs, families=job.families, devices=[int(d) + (d > 1) for d in job.devices]) for job in jobs
    ]
    assert "leaf0.up" in live(cluster, moved)


@pytest.mark.parametrize("fold", [True, False])
def test_times_are_those_of_the_ports(star: ModuleType, fold: bool) -> None:
    run = simulate(star.cluster(4, 1, leaf=2), messages(star), fold=fold)
    assert [star.times(run, 0, job=j)["send"] for j in range(4)] == [(0, 2000)] * 4
