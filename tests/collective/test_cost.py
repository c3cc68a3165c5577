"""What a collective takes alone."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from clustersim.collective.barrier import barrier
from clustersim.collective.cost import group_cost
from clustersim.collective.ring import ring
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.engine.simulate import simulate
from clustersim.hardware.protocol import Protocol
from clustersim.library.topologies import load_topology


def test_a_barrier_is_latency_only(star: ModuleType) -> None:
    shape = GroupShape(node=np.array([0, 0, 2, 2]))
    cost = group_cost(star.cluster(2, 2, latency=1e-6), np.array([[0, 1, 2, 3]]), (barrier("barrier", 0, shape),))
    assert cost.ns.tolist() == cost.latency_ns.tolist()
    assert cost.ns[0, 0] > 0
    assert len(cost.row) == 0


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "barrier"])
def test_a_group_of_one_costs_nothing(star: ModuleType, kind: str) -> None:
    program = star.program(star.gemm(7), star.collective(kind, 0 if kind == "barrier" else 1000))
    run = simulate(star.cluster(1, 1), star.job(program, families=(star.groups("dp", [0]),)))
    assert star.times(run, 0)[kind] == (7, 7)


def test_the_slowest_link_and_the_slowest_launch_count(star: ModuleType) -> None:
    """Two groups of two: one behind a halved NIC, one with a card that launches late."""
    late = replace(star.CARD, name="late", launch_latency=4e-6)
    cluster = star.cluster(4, 1, gpus=(star.CARD, late), gpu_of=[0, 0, 0, 1]).with_capacity({"nic0.tx": 0.5})
    traffic = ring("all_reduce", 10_000, GroupShape(node=np.array([0, 1])))
    cost = group_cost(cluster, np.array([[0, 1], [2, 3]]), (traffic,))
    assert cost.ns[:, 0].tolist() == [2000, 5000]
    assert cost.latency_ns[:, 0].tolist() == [0, 4000]


def test_phases_follow_one_another_unless_pipelined(star: ModuleType) -> None:
    def phase(source: int, destination: int) -> Phase:
        return Phase(
            source=np.array([source]), destination=np.array([destination]), nbytes=np.array([10_000]), num_steps=1
        )

    phases = (phase(0, 1), phase(1, 2))
    memory = np.zeros(3, np.int64)
    one = Traffic(algorithm="own", phases=phases, pipelined=True, memory_nbytes=memory)
    both = one, replace(one, pipelined=False)
    cost = group_cost(star.cluster(3, 1), np.array([[0, 1, 2]]), both)
    assert cost.ns.tolist() == [[1000, 2000]]


def test_loads_add_up_over_phases(star: ModuleType) -> None:
    traffic = ring("all_reduce", 12_000, GroupShape(node=np.array([0, 0, 0, 0])))
    cluster = star.cluster(1, 4)
    cost = group_cost(cluster, np.array([[3, 1, 0, 2]]), (traffic,))
    loads = dict(zip(cluster.resources.names(cost.row), cost.load[:, 0].tolist(), strict=True))
    assert {name: load for name, load in loads.items() if "up" in name} == {f"nvlink{k}.up": 18_000 for k in range(4)}
    assert cost.by_phase.peak_load[0, 0] == 18_000, "of the links, for which it waits; HBM has more and is not busy"


def test_the_fastest_protocol_is_taken_group_by_group(star: ModuleType) -> None:
    """Two nodes of two: 2 steps inside and 4 between; quick starts at a quarter of the bandwidth, wide takes it all."""
    quick = Protocol(
        name="quick", launch_latency=2e-6, between_latency=1e-6, inside_fraction=0.25, between_fraction=0.25
    )
    wide = Protocol(name="wide", launch_latency=5e-6, inside_latency=1e-6, between_latency=3e-6)
    plain = star.cluster(4, 2).with_capacity({f"nic{nic}.tx": 0.1 for nic in range(4)})
    cluster = replace(plain, protocols={"ring": (quick, wide)})
    traffic = tuple(ring("all_reduce", nbytes, GroupShape(node=np.array([0, 0, 2, 2]))) for nbytes in (100, 10**6))
    for devices in ([[0, 1, 2, 3]], [[0, 1, 2, 3], [4, 5, 6, 7]]):
        before = group_cost(plain, np.array(devices), traffic)
        after = group_cost(cluster, np.array(devices), traffic)
        links = before.ns - before.latency_ns
        assert (after.latency_ns == [2000 + 4 * 1000, 5000 + 2 * 1000 + 4 * 3000]).all()
        assert (after.ns[:, 1] == after.latency_ns[:, 1] + links[:, 1]).all()
        assert np.abs(after.ns[:, 0] - after.latency_ns[:, 0] - 4 * links[:, 0]).max() <= 4
        assert (after.load == before.load).all()
        assert after.protocol.tolist() == [["quick", "wide"]] * len(devices)


def test_protocols_are_for_the_algorithms_they_name(star: ModuleType) -> None:
    late = Protocol(name="late", launch_latency=1e-3)
    traffic = (ring("all_reduce", 10_000, GroupShape(node=np.array([0, 0]))),)
    plain = star.cluster(1, 2)
    costs = [
        group_cost(replace(plain, protocols={name: (late,)}), np.array([[0, 1]]), traffic).ns.item()
        for name in ("tree", "ring")
    ]
    assert costs == [group_cost(plain, np.array([[0, 1]]), traffic).ns.item(), costs[0] + 1_000_000]


def test_a_switch_that_copies_carries_a_stream_once(star: ModuleType) -> None:
    """One member to three others: three times over its link by itself, once as one tree; two trees are two streams."""
    nbytes = np.full(3, 10_000)
    ends = {"source": np.zeros(3, np.int64), "destination": np.array([1, 2, 3]), "nbytes": nbytes, "num_steps": 1}
    trees = None, np.zeros(3, np.int64), np.array([7, 7, 9])
    traffic = tuple(
        Traffic(
            algorithm="own",
            phases=(Phase(**ends, tree=tree),),
            pipelined=True,
            memory_nbytes=np.zeros(4, np.int64),
        )
        for tree in trees
    )
    cost = group_cost(star.cluster(4, 1), np.array([[0, 1, 2, 3]]), traffic)
    assert cost.ns.tolist() == [[3000, 1000, 2000]]
    assert cost.load.max(axis=0).tolist() == [30_000, 10_000, 20_000]


def test_only_what_switches_add_up_crosses_their_engines() -> None:
    """Three nodes to the first: one sum a tree over the leaf's engine. The way back is copied, and needs no engine."""
    cluster = load_topology("dgx-h100", nodes=4, **{"fabric.sharp": True})
    others, root = np.array([1, 2, 3]), np.zeros(3, np.int64)
    one = np.zeros(3, np.int64)
    phases = [
        Phase(source=source, destination=destination, nbytes=np.full(3, 10**6), num_steps=1, tree=tree)
        for source, destination, tree in ((others, root, one), (root, others, one), (others, root, None))
    ]
    traffic = tuple(
        Traffic(algorithm="own", phases=(phase,), pipelined=True, memory_nbytes=np.zeros(4, np.int64))
        for phase in phases
    )
    cost = group_cost(cluster, np.array([[0, 8, 16, 24]]), traffic)
    load = dict(zip(cluster.resources.names(cost.row), cost.load.tolist(), strict=True))
    assert load["leaf0/reduce"] == [10**6, 0, 0]
    assert load["node0/nic0.rx"] == [10**6, 0, 3 * 10**6]
    assert load["node0/nic0.tx"] == [0, 10**6, 0]
