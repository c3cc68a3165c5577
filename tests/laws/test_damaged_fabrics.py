"""Folding is exact where fabrics are not symmetric: hashed ECMP, failures, mixed nodes, switches that reduce."""

from __future__ import annotations

import random
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from clustersim.faults import BadInput
from clustersim.hardware.link import Link
from clustersim.hardware.nic import NIC
from clustersim.hardware.storage import Drive
from clustersim.hardware.switch import Switch
from clustersim.topology.cluster import NodeKind, connect_mixed
from clustersim.topology.fabric import Ports
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.host import Host
from clustersim.topology.nvswitch import nvswitch
from clustersim.topology.rail_optimized import rail_optimized
from clustersim.topology.topology import Topology

SWITCH = Switch(name="switch", radix=8, port_bandwidth=1e10, latency=1e-7, reduction_bandwidth=1e10, reduction_slots=1)


def kind(star: ModuleType, num_gpus: int, num_nics: int, count: int, *, fast: bool) -> NodeKind:
    """Nodes of few GPUs behind one switch, each with a drive; links as wide as a NIC, so that they are soon short."""
    drive = Drive(name="drive", capacity_bytes=10**12, read_bandwidth=4e9, write_bandwidth=2e9, latency=0.0)
    host = Host(
        cpu=star.HOST,
        num_sockets=1,
        link=Link(name="pcie", bandwidth=2e10, latency=0.0),
        drive=replace(drive, read_bandwidth=8e9) if fast else drive,
        num_drives=1,
        pcie_switch_of=(0,) * num_gpus if fast else (),
    )
    gpu = replace(star.CARD, name="fast", memory_bandwidth=2 * star.CARD.memory_bandwidth) if fast else star.CARD
    inner = Switch(name="inner", radix=64, port_bandwidth=1e11, latency=0.0)
    nvlink = Link(name="nvlink", bandwidth=5e10, latency=0.0)
    node = nvswitch(gpu=gpu, num_gpus=num_gpus, link=nvlink, num_links=2, switch=inner, host=host)
    nic = NIC(name="nic", bandwidth=2e10 if fast else 1e10, latency=0.0)
    return NodeKind(node=node, count=count, ports=Ports.spread(nic=nic, nics_per_node=num_nics, num_gpus=num_gpus))


@st.composite
def clusters(draw: st.DrawFn, star: ModuleType, num_devices: int) -> Topology:
    """A tree of few ports over one or two kinds of nodes, with what has failed."""
    build = draw(st.sampled_from([fat_tree, rail_optimized]))
    num_gpus = draw(st.sampled_from([1, 2, 4]))
    num_nics = draw(st.sampled_from([1, num_gpus]))
    kinds = [kind(star, num_gpus, num_nics, -(-num_devices // num_gpus), fast=False)]
    if draw(st.booleans()):
        half = max(1, kinds[0].count // 2)
        kinds = [kind(star, num_gpus, 1, half, fast=True), replace(kinds[0], count=kinds[0].count)]
    widest = max((k.ports for k in kinds if k.ports), key=lambda ports: (ports.count, ports.nic.bandwidth))
    fabric = build(
        ports=widest,
        switch=SWITCH,
        num_nodes=sum(k.count for k in kinds),
        **draw(st.sampled_from([{"ecmp": "ideal"}, {"ecmp": "hashed"}, {"sharp": True}])),
        ecmp_seed=draw(st.integers(0, 3)),
        oversubscription=draw(st.sampled_from([1, 2])),
    )
    whole = connect_mixed(kinds, fabric, name="test")
    links = [name for name in whole.resources.names() if "nic" in name or "leaf" in name]
    switches = ["leaf0", "pod0", "core0", "rail0", "node0/nic0"]
    lost = draw(st.lists(st.sampled_from(links + switches * 3), max_size=3))
    try:
        return whole.without_links(lost)
    except BadInput:
        return whole


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_folded_is_full(data: st.DataObject, star: ModuleType, cases: Any, times_of: Any) -> None:
    case = data.draw(cases(32, shared_pools=False))  # grants of one instant go by rank number
    num_devices = 1 + max(int(job.devices.max()) for job in case.jobs)
    try:
        topology = data.draw(clusters(star, num_devices))
    except BadInput:  # too few ports for the nodes
        assume(False)
    slow = st.dictionaries(st.sampled_from(topology.resources.names()), st.sampled_from([0.5, 0.3]), max_size=2)
    perturb = {"slow_ranks": case.perturb["slow_ranks"], "slow_links": data.draw(slow)}
    case = replace(case, topology=topology, perturb=perturb)
    orders = [np.array(data.draw(st.permutations(range(job.num_ranks)))) for job in case.jobs]
    try:
        full = case.run(fold=False)
    except BadInput as refused:  # an algorithm that needs equally many members on each node
        assume(not all("equally many members" in fault.rule for fault in refused.faults))
        raise
    folded = case.renumbered(orders).run(fold=True, shuffle=random.Random(data.draw(st.integers(0, 9))).shuffle)
    for j, job in enumerate(case.jobs):
        for rank in range(job.num_ranks):
            assert times_of(folded, j, int(orders[j][rank])) == times_of(full, j, rank)
