"""Folding is exact on every fabric, and folds what is alike on those that look the same from every node."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustersim.engine.simulate import simulate
from clustersim.hardware.link import Link
from clustersim.hardware.nic import NIC
from clustersim.hardware.storage import Drive
from clustersim.hardware.switch import Switch
from clustersim.topology.check import check
from clustersim.topology.cluster import connect
from clustersim.topology.dragonfly import dragonfly
from clustersim.topology.dragonfly_plus import dragonfly_plus
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.fully_connected import fully_connected
from clustersim.topology.grid import mesh, ring, torus
from clustersim.topology.host import Host
from clustersim.topology.nvswitch import nvswitch
from clustersim.topology.topology import Topology
from clustersim.topology.two_sites import two_sites

LINK = Link(name="cable", bandwidth=1e10, latency=1e-7)
SWITCH = Switch(name="switch", radix=16, port_bandwidth=1e10, latency=1e-7)


def cluster(
    star: ModuleType, num_nodes: int, num_gpus: int, num_nics: int, fabric: Callable[..., Fabric], **given: Any
) -> Topology:
    """Nodes of few GPUs behind one switch, each with a drive; links as wide as a NIC, so that they are soon short."""
    drive = Drive(name="drive", capacity_bytes=10**12, read_bandwidth=4e9, write_bandwidth=2e9, latency=0.0)
    host = Host(
        cpu=star.HOST, num_sockets=1, link=Link(name="pcie", bandwidth=2e10, latency=0.0), drive=drive, num_drives=1
    )
    inner = Switch(name="inner", radix=64, port_bandwidth=1e11, latency=0.0)
    nvlink = Link(name="nvlink", bandwidth=5e10, latency=0.0)
    node = nvswitch(gpu=star.CARD, num_gpus=num_gpus, link=nvlink, num_links=2, switch=inner, host=host)
    nic = NIC(name="nic", bandwidth=1e10, latency=0.0)
    ports = Ports.spread(nic=nic, nics_per_node=num_nics, num_gpus=num_gpus)
    return connect(node, fabric(ports=ports, num_nodes=num_nodes, **given), name="test", num_nodes=num_nodes)


@st.composite
def fabrics(draw: st.DrawFn) -> tuple[Callable[..., Fabric], dict[str, Any]]:
    """A builder and arguments that hold any number of nodes up to 64."""
    builders: list[Callable[..., Fabric]] = [torus, mesh, ring, fully_connected, dragonfly, dragonfly_plus, two_sites]
    build = draw(st.sampled_from(builders))
    given: dict[str, Any] = {"link": LINK, "num_links": draw(st.integers(1, 2))}
    if build in (torus, mesh):
        given["num_dims"] = draw(st.integers(1, 3))
    if build is dragonfly:
        given = {"switch": SWITCH, "routers_per_group": draw(st.integers(2, 4)), "nodes_per_router": 2}
        given |= {"global_links": 8, "radix": 32, "rails": draw(st.sampled_from([None, 1]))}
    if build is dragonfly_plus:
        given = {"switch": SWITCH, "leaves_per_group": draw(st.integers(1, 3)), "spines_per_group": 2}
        given |= {"nodes_per_leaf": draw(st.integers(1, 2)), "global_links": 32, "radix": 64}
    if build is two_sites:
        given = {"switch": SWITCH, "wan_bandwidth": 2e10, "wan_latency": 5e-6, "sites": draw(st.integers(2, 3))}
        given |= {"within": draw(st.sampled_from(["fat_tree", "rail_optimized"]))}
    return build, given


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_folded_is_full_on_every_fabric(data: st.DataObject, star: ModuleType, cases: Any, times_of: Any) -> None:
    case = data.draw(cases(32, shared_pools=False))  # grants of one instant go by rank number
    num_gpus = data.draw(st.sampled_from([1, 2, 4]))
    num_nics = data.draw(st.sampled_from([1, num_gpus]))
    num_devices = 1 + max(int(job.devices.max()) for job in case.jobs)
    build, given = data.draw(fabrics())
    topology = cluster(star, -(-num_devices // num_gpus), num_gpus, num_nics, build, **given)
    slow = st.dictionaries(st.sampled_from(topology.resources.names()), st.sampled_from([0.5, 0.3]), max_size=2)
    perturb = {"slow_ranks": case.perturb["slow_ranks"], "slow_links": data.draw(slow)}
    case = replace(case, topology=topology, perturb=perturb)
    orders = [np.array(data.draw(st.permutations(range(job.num_ranks)))) for job in case.jobs]
    full = case.run(fold=False)
    folded = case.renumbered(orders).run(fold=True, shuffle=random.Random(data.draw(st.integers(0, 9))).shuffle)
    for j, job in enumerate(case.jobs):
        for rank in range(job.num_ranks):
            assert times_of(folded, j, int(orders[j][rank])) == times_of(full, j, rank)


@settings(max_examples=60, deadline=None)
@given(
    fabric=fabrics(),
    num_nodes=st.integers(1, 24),
    num_gpus=st.sampled_from([1, 2, 4]),
    shared=st.booleans(),
)
def test_all_reach_all_alike_both_ways_and_names_lead_back(
    star: ModuleType, fabric: tuple[Callable[..., Fabric], dict[str, Any]], num_nodes: int, num_gpus: int, shared: bool
) -> None:
    build, given = fabric
    topology = cluster(star, num_nodes, num_gpus, 1 if shared else num_gpus, build, **given)
    assert check(topology) == []
    names = topology.resources.names()
    assert len(set(names)) == len(names)
    assert [topology.resources.find(name) for name in names] == list(range(len(names)))


SYMMETRIC: list[tuple[Callable[..., Fabric], dict[str, Any]]] = [
    (torus, {"link": LINK, "dims": (4, 4)}),
    (torus, {"link": LINK, "dims": (2, 2, 4)}),
    (ring, {"link": LINK}),
    (fully_connected, {"link": LINK}),
    (dragonfly, {"switch": SWITCH, "routers_per_group": 2, "nodes_per_router": 1, "global_links": 7, "rails": 1}),
    (dragonfly, {"switch": SWITCH, "routers_per_group": 2, "nodes_per_router": 2, "global_links": 7}),
    (dragonfly_plus, {"switch": SWITCH, "leaves_per_group": 2, "nodes_per_leaf": 2, "global_links": 6}),
    (two_sites, {"switch": SWITCH, "wan_bandwidth": 2e10, "wan_latency": 5e-6}),
]


@pytest.mark.parametrize(("build", "given"), SYMMETRIC)
def test_a_uniform_exchange_on_a_symmetric_fabric_folds(
    star: ModuleType, times_of: Any, build: Callable[..., Fabric], given: dict[str, Any]
) -> None:
    """All-to-all among 16 nodes over each of two ports: the ranks of a port are alike, though links are short."""
    topology = cluster(star, 16, 2, 2, build, **given)
    program = star.program(star.gemm(500), star.collective("all_to_all", 200_000, "dp"), star.gemm(300))
    job = star.job(*[program] * 32, families=(star.groups("dp", range(0, 32, 2), range(1, 32, 2)),))
    full, folded = (simulate(topology, job, fold=fold) for fold in (False, True))
    assert all(times_of(folded, 0, rank) == times_of(full, 0, rank) for rank in range(32))
    assert len(folded.record.lanes) <= 2
