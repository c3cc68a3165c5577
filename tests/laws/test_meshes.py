"""Folding is exact on meshes of direct links too, where groups on different GPUs run different rings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustersim.collective.seating import seatings
from clustersim.hardware.link import Link
from clustersim.hardware.nic import NIC
from clustersim.hardware.storage import Drive
from clustersim.hardware.switch import Switch
from clustersim.topology.cluster import connect
from clustersim.topology.fabric import Ports
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.host import Host
from clustersim.topology.mesh import HYBRID_CUBE_MESH, nvlink_mesh
from clustersim.topology.meshes import meshes
from clustersim.topology.topology import Topology


def cluster(star: ModuleType, num_nodes: int, links: Sequence[Sequence[int]], over: float) -> Topology:
    """Nodes of one mesh under leaves of two nodes, a NIC a GPU, a drive a node."""
    drive = Drive(name="drive", capacity_bytes=10**12, read_bandwidth=4e9, write_bandwidth=2e9, latency=0.0)
    host = Host(
        cpu=star.HOST,
        num_sockets=1,
        link=Link(name="pcie", bandwidth=2e10, latency=0.0),
        drive=drive,
        num_drives=1,
    )
    link = Link(name="link", bandwidth=1e10, latency=1e-7)
    node = nvlink_mesh(gpu=star.CARD, num_links=links, link=link, host=host)
    ports = Ports.spread(
        nic=NIC(name="nic", bandwidth=1e10, latency=0.0), nics_per_node=len(links), num_gpus=len(links)
    )
    switch = Switch(name="switch", radix=4 * len(links), port_bandwidth=1e10, latency=0.0)
    fabric = fat_tree(ports=ports, switch=switch, num_nodes=num_nodes, oversubscription=over)
    return connect(node, fabric, name="mesh", num_nodes=num_nodes)


@st.composite
def links(draw: st.DrawFn) -> list[list[int]]:
    """Links of 3, 4 or 8 GPUs; a ring joins them all."""
    n = draw(st.sampled_from([3, 4, 8]))
    if n == 8 and draw(st.booleans()):
        return [list(row) for row in HYBRID_CUBE_MESH]
    matrix = np.array(draw(st.lists(st.sampled_from([0, 1, 1, 2]), min_size=n * n, max_size=n * n))).reshape(n, n)
    matrix[np.arange(n), (np.arange(n) + 1) % n] += 1
    matrix = np.maximum(matrix, matrix.T)
    np.fill_diagonal(matrix, 0)
    made: list[list[int]] = matrix.tolist()
    return made


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_folded_is_full_on_meshes(data: st.DataObject, star: ModuleType, cases: Any, times_of: Any) -> None:
    case = data.draw(cases(32, shared_pools=False))  # grants of one instant go by rank number
    num_links = data.draw(links())
    num_devices = 1 + max(int(job.devices.max()) for job in case.jobs)
    topology = cluster(star, -(-num_devices // len(num_links)), num_links, data.draw(st.sampled_from([1.0, 2.0])))
    slow = st.dictionaries(st.sampled_from(topology.resources.names()), st.sampled_from([0.5, 0.3]), max_size=2)
    perturb = {"slow_ranks": case.perturb["slow_ranks"], "slow_links": data.draw(slow)}
    case = replace(case, topology=topology, perturb=perturb)
    orders = [np.array(data.draw(st.permutations(range(job.num_ranks)))) for job in case.jobs]
    full = case.run(fold=False)
    folded = case.renumbered(orders).run(fold=True, shuffle=random.Random(data.draw(st.integers(0, 9))).shuffle)
    for j, job in enumerate(case.jobs):
        for rank in range(job.num_ranks):
            assert times_of(folded, j, int(orders[j][rank])) == times_of(full, j, rank)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_shapes_know_no_numbers_of_groups(data: st.DataObject, star: ModuleType) -> None:
    """Groups in another order, or beside others, have the shapes they had."""
    topology = cluster(star, 3, data.draw(links()), 1.0)
    size = data.draw(st.integers(2, 9))
    order = st.permutations(range(topology.num_devices)).map(lambda devices: devices[:size])
    groups = np.array(data.draw(st.lists(order, min_size=1, max_size=6)))
    found = meshes(topology)
    shapes, shape_of = seatings(topology, found, groups)
    for group, k in zip(groups, shape_of, strict=True):
        (alone,), _ = seatings(topology, found, group[None])
        assert (shapes[k].node == alone.node).all()
        assert (shapes[k].rings is None) == (alone.rings is None)
        assert alone.rings is None or (shapes[k].rings == alone.rings).all()
