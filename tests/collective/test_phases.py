"""What the phases of a collective take and ask for, each by itself."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.collective.bruck import bruck
from clustersim.collective.cost import GroupCost, group_cost
from clustersim.collective.halving_doubling import halving_doubling
from clustersim.collective.hierarchical import hierarchical
from clustersim.collective.loads import loads_of
from clustersim.collective.ring import ring
from clustersim.collective.traffic import Algorithm, GroupShape, Phase, Traffic
from clustersim.hardware.protocol import TEXTBOOK, Protocol
from clustersim.topology.topology import Topology

IN_TURN = [
    (hierarchical, "all_reduce"),
    (hierarchical, "all_to_all"),
    (halving_doubling, "all_reduce"),
    (halving_doubling, "reduce_scatter"),
    (bruck, "all_gather"),
]
WAYS = (
    Protocol(name="quick", inside_latency=3e-7, between_latency=7e-7, inside_fraction=0.5, between_fraction=0.4),
    Protocol(name="wide", launch_latency=5e-6, inside_latency=1e-6, between_latency=4e-6, copy_bandwidth=1e12),
)


def call(topology: Topology, *algorithms: Algorithm, kind: str = "all_reduce", nbytes: int = 10**6) -> list[Traffic]:
    node = topology.node_of.tolist()
    shape = GroupShape(node=np.array([node.index(of) for of in node]))
    return [algorithm(kind, nbytes, shape) for algorithm in algorithms]


def cost_of(topology: Topology, *traffic: Traffic) -> GroupCost:
    return group_cost(topology, np.arange(topology.num_devices)[None], traffic)


@settings(max_examples=60, deadline=None)
@given(
    which=st.sampled_from(IN_TURN),
    grid=st.sampled_from([(2, 4), (4, 4), (8, 1), (1, 8), (3, 5)]),
    nbytes=st.floats(0, 9.5).map(lambda x: round(10**x)),
    latency=st.sampled_from([1e-9, 1e-6]),
    ways=st.sampled_from([(), WAYS[:1], WAYS]),
)
def test_phases_take_what_the_collective_takes(
    star: ModuleType,
    which: tuple[Algorithm, str],
    grid: tuple[int, int],
    nbytes: int,
    latency: float,
    ways: tuple[Protocol, ...],
) -> None:
    """To the nanosecond, with time enough for the bytes of each on every resource."""
    cluster = star.cluster(*grid, latency=latency)
    (what,) = call(cluster, which[0], kind=which[1], nbytes=nbytes)
    cluster = replace(cluster, protocols={what.algorithm: ways} if ways else {})
    cost, everyone = cost_of(cluster, what), np.arange(cluster.num_devices)[None]
    (demand,) = loads_of(cluster, everyone, (what,)).demands
    assert cost.ns.item() == min(int(way.ns(demand)[0].item()) for way in ways or (TEXTBOOK,))
    ahead = grid == (3, 5) and not ways and what.algorithm == "halving_doubling"  # some members run ahead
    assert cost.by_phase.phases.num_phases == (1 if ahead else len(what.phases))
    assert cost.by_phase.ns.sum() == cost.ns.item()
    assert (cost.by_phase.load.sum(axis=1) == cost.load[:, 0]).all()
    assert (cost.by_phase.memory_nbytes.sum(axis=1) == what.memory_nbytes).all()
    needed = cost.by_phase.load * 1e9 / cluster.resources.capacity[cost.row][:, None]
    assert (cost.by_phase.ns >= np.ceil(needed * (1 - 2**-46)).max(axis=0)).all()


@settings(max_examples=30, deadline=None)
@given(which=st.sampled_from(IN_TURN), nbytes=st.floats(3, 9).map(lambda x: round(10**x)))
def test_the_sum_is_the_textbook(star: ModuleType, which: tuple[Algorithm, str], nbytes: int) -> None:
    """Steps times the longest route, and the busiest link of each phase, in fractions."""
    cluster = star.cluster(2, 4, latency=1e-6)
    (what,) = call(cluster, which[0], kind=which[1], nbytes=nbytes)
    latency, seconds = 0, Fraction(0)
    for phase in what.phases:
        hops = cluster.route(phase.source, phase.destination)
        latency += phase.num_steps * 1000 * int((hops >= 0).sum(axis=1).max())
        loads: dict[int, int] = {}
        for row, size in zip(hops.ravel().tolist(), np.repeat(phase.nbytes, hops.shape[1]).tolist(), strict=True):
            loads[row] = loads.get(row, 0) + size
        seconds += max(Fraction(load, int(cluster.resources.capacity[r])) for r, load in loads.items() if r >= 0)
    assert cost_of(cluster, what).ns.item() == latency + ceil(seconds * 10**9)


def test_each_phase_has_its_own_bytes_time_and_memory(star: ModuleType) -> None:
    """A ring of two in each node, rings over both nodes on two lanes, a ring of two: S/2 each, S = 2,000,000 B.

    Links of 100 and 10 B/ns carry them, after one step, two and one; members move in HBM what they send and receive.
    """
    cluster = star.cluster(2, 2, latency=1e-6)
    (what,) = call(cluster, hierarchical, nbytes=2_000_000)
    cost = cost_of(cluster, what)
    assert cost.by_phase.ns.tolist() == [[10_000 + 2000, 100_000 + 8000, 10_000 + 2000]]
    loads = dict(zip(cluster.resources.names(cost.row), cost.by_phase.load.tolist(), strict=True))
    assert loads["nvlink0.up"] == [1_000_000, 0, 1_000_000]
    assert loads["nic0.tx"] == [0, 1_000_000, 0]
    memory = int(what.memory_nbytes[0])
    assert loads["hbm0"] == [memory // 3, memory // 3, memory - 2 * (memory // 3)]
    assert cost.by_phase.peak_load.tolist() == [[1_000_000] * 3], "of the one flow on the phase's own links"


def test_only_the_first_phase_has_the_launch(star: ModuleType) -> None:
    plain = star.cluster(2, 2, latency=1e-6)
    (what,) = call(plain, hierarchical)
    late = replace(plain, protocols={"hierarchical": (Protocol(name="late", launch_latency=1e-3),)})
    before, after = (cost_of(cluster, what).by_phase.ns[0] for cluster in (plain, late))
    assert (after - before).tolist() == [1_000_000, 0, 0]


def test_what_overlaps_is_one_phase(star: ModuleType) -> None:
    cluster = star.cluster(2, 2)
    whole, parts = call(cluster, ring, hierarchical)
    cost = cost_of(cluster, whole, parts, whole)
    assert cost.by_phase.phases.first.tolist() == [0, 1, 4, 5]
    assert (cost.by_phase.load[:, [0, 4]] == cost.load[:, [0, 2]]).all()
    assert (cost.load == np.stack([cost_of(cluster, what).load[:, 0] for what in (whole, parts, whole)], axis=1)).all()


@pytest.mark.parametrize("latency", [0.0, 1e-9])
def test_without_latency_each_phase_ends_on_its_own_nanosecond(star: ModuleType, latency: float) -> None:
    """Two phases of 100.5 ns: 2 · 101 ns; with 2 ns of latency each, 201 + 4 as for all together."""
    one, other = np.array([0]), np.array([1])
    ends = ((one, other), (other, one))
    phases = tuple(Phase(source=a, destination=b, nbytes=np.array([1005]), num_steps=1) for a, b in ends)
    what = Traffic(algorithm="own", phases=phases, pipelined=False, memory_nbytes=np.zeros(2, np.int64))
    cost = cost_of(star.cluster(2, 1, leaf=2, latency=latency), what)
    assert cost.by_phase.ns.tolist() == ([[101, 101]] if not latency else [[102, 103]])


def test_memory_can_be_the_busiest_of_one_phase_alone(star: ModuleType) -> None:
    """10,000 B over NVLink, 100 ns, then over NICs, 1000 ns; half of 1,000,000 B in HBM beside each takes 500 ns."""
    ends = (([0, 2], [1, 3]), ([0, 1], [2, 3]))
    size = np.full(2, 10_000)
    phases = tuple(Phase(source=np.array(a), destination=np.array(b), nbytes=size, num_steps=1) for a, b in ends)
    memory = np.array([1_000_000, 0, 0, 0])
    cost = cost_of(star.cluster(2, 2), Traffic(algorithm="own", phases=phases, pipelined=False, memory_nbytes=memory))
    assert cost.by_phase.ns.tolist() == [[500, 1000]]
    assert cost.ns.tolist() == [[1500]]
