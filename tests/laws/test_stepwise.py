"""Whole collectives against the same ones played transfer by transfer: times within 5 %, alone and side by side.

What is known to be off by more stands here too, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clustersim.collective import direct, halving_doubling, hierarchical, ring, tree
from clustersim.collective.cost import group_cost
from clustersim.collective.steps import direct as direct_steps
from clustersim.collective.steps import halving_doubling as halving_doubling_steps
from clustersim.collective.steps import hierarchical as hierarchical_steps
from clustersim.collective.steps import ring as ring_steps
from clustersim.collective.steps import tree as tree_steps
from clustersim.collective.steps.schedule import Stepper
from clustersim.collective.traffic import Algorithm, GroupShape
from clustersim.engine.simulate import simulate
from clustersim.engine.stepwise import StepwiseCollective, stepwise
from clustersim.library.topologies import load_topology
from clustersim.topology.topology import Topology
from clustersim.workload.program import Program

WITHIN = 0.05
SLICES = 64
Call = tuple[str, str, int, Sequence[int]]
"""(algorithm, kind, bytes, devices)"""

BOTH: dict[str, tuple[Algorithm, Stepper]] = {
    "direct": (direct.direct, direct_steps.direct),
    "halving_doubling": (halving_doubling.halving_doubling, halving_doubling_steps.halving_doubling),
    "hierarchical": (hierarchical.hierarchical, hierarchical_steps.hierarchical),
    "ring": (ring.ring, ring_steps.ring),
    "tree": (tree.tree, tree_steps.tree),
}
LOCKSTEP = [
    (name, kind)
    for name in ("ring", "hierarchical", "halving_doubling", "direct")
    for kind in {"ring": ring.KINDS[:3], "direct": direct.KINDS}.get(name, hierarchical.KINDS)
    if (name, kind) != ("halving_doubling", "all_to_all")
]
GRIDS = [(1, 2), (1, 8), (5, 1), (8, 1), (2, 4), (2, 8), (4, 4)]
NBYTES = st.floats(3.5, 9.5).map(lambda x: round(10**x))
LATENCY = st.integers(0, 6).map(lambda x: 10.0**x * 1e-9)


def shape_of(topology: Topology, devices: Sequence[int]) -> GroupShape:
    node = topology.node_of[np.asarray(devices)].tolist()
    return GroupShape(node=np.array([node.index(of) for of in node]))


def by_steps(topology: Topology, calls: Sequence[Call]) -> NDArray[np.float64]:
    """Ends [s]; chains and trees, which pass a whole part along, in many slices."""
    played = []
    for name, kind, nbytes, devices in calls:
        slices = SLICES if name == "tree" or kind in ("broadcast", "reduce") else 1
        schedule = BOTH[name][1](kind, nbytes, shape_of(topology, devices), slices)
        played.append(StepwiseCollective(schedule=schedule, devices=np.asarray(devices)))
    return stepwise(topology, played)


def as_activities(star: ModuleType, topology: Topology, calls: Sequence[Call]) -> NDArray[np.float64]:
    """Ends [s]; each call on a stream of its own."""
    programs = [Program() for _ in range(topology.num_devices)]
    families = []
    for i, (name, kind, nbytes, devices) in enumerate(calls):
        op = star.collective(kind, nbytes, f"slot {i}", name=f"call {i}", algorithm=BOTH[name][0])
        for device in devices:
            programs[device].add(op, stream=f"stream {i}")
        families.append(star.groups(f"slot {i}", list(devices)))
    for program in programs:
        program.add(star.delay(0), stream="idle")
    run = simulate(topology, star.job(*programs, families=tuple(families)), fold=False)
    return np.array([star.times(run, calls[i][3][0])[f"call {i}"][1] for i in range(len(calls))]) / 1e9


def parts(topology: Topology, call: Call) -> tuple[float, float]:
    """Latency and bandwidth part of a collective alone [s]; the textbook adds them."""
    name, kind, nbytes, devices = call
    cost = group_cost(topology, np.asarray(devices)[None], (BOTH[name][0](kind, nbytes, shape_of(topology, devices)),))
    return float(cost.latency_ns[0, 0]) / 1e9, float(cost.ns[0, 0] - cost.latency_ns[0, 0]) / 1e9


@settings(max_examples=150, deadline=None)
@given(grid=st.sampled_from(GRIDS), which=st.sampled_from(LOCKSTEP), nbytes=NBYTES, latency=LATENCY)
def test_alone_in_step(
    star: ModuleType, grid: tuple[int, int], which: tuple[str, str], nbytes: int, latency: float
) -> None:
    """Whatever waits for its last message before it sends the next: latencies and bytes add up."""
    topology = star.cluster(*grid, latency=latency)
    if which[0] == "ring" and min(grid) > 1:
        grid = (1, grid[1])
    calls = [(*which, nbytes, range(grid[0] * grid[1]))]
    assert as_activities(star, topology, calls) == pytest.approx(by_steps(topology, calls), rel=WITHIN, abs=2e-9)


@settings(max_examples=30, deadline=None)
@given(
    grid=st.sampled_from([(1, 2), (1, 8), (8, 1), (2, 4), (4, 4)]),
    which=st.sampled_from([("ring", kind) for kind in ring.KINDS] + [("tree", kind) for kind in tree.KINDS]),
    nbytes=NBYTES,
    latency=LATENCY,
)
def test_alone_overlapping(
    star: ModuleType, grid: tuple[int, int], which: tuple[str, str], nbytes: int, latency: float
) -> None:
    """Rings over several nodes, chains and trees hide latency behind bytes: between the larger of both and their sum.

    Blocks run ahead on the fast links of a node and queue at its NICs, slices of a tree's way down leave while others
    come up. So the sum, which the default fidelity takes, is within 5 % where one part is a twentieth of the other or
    less, and at most twice too long. Filling a pipeline of 64 slices takes up
    to 1/64 of the bytes' time a hop.
    """
    topology = star.cluster(*grid, latency=latency)
    call = (*which, nbytes, range(grid[0] * grid[1]))
    (played,), whole = by_steps(topology, [call]), as_activities(star, topology, [call])
    of_latency, of_bytes = parts(topology, call)
    assert whole == pytest.approx(of_latency + of_bytes, abs=2e-9)
    n = grid[0] * grid[1]
    hops = sum(phase.num_steps for phase in BOTH[which[0]][0](*which[1:], nbytes, shape_of(topology, call[3])).phases)
    fill = hops / SLICES * of_bytes if which[0] == "tree" or which[1] in ("broadcast", "reduce") else 0.0
    assert max((n - 1) / n * of_latency, of_bytes) <= played * (1 + WITHIN) + 4e-9
    assert played <= (of_latency + of_bytes) * (1 + WITHIN) + fill + 4e-9


@settings(max_examples=30, deadline=None)
@given(
    grid=st.sampled_from([(1, 8), (8, 1), (4, 4), (2, 4)]),
    over=st.sampled_from([1.0, 4.0]),
    kinds=st.lists(st.sampled_from(ring.KINDS[:3]), min_size=2, max_size=3),
    nbytes=st.floats(5.5, 9.5).map(lambda x: round(10**x)),
    ratio=st.sampled_from([1, 2, 7]),
)
def test_rings_over_the_same_members_share_alike(
    star: ModuleType, grid: tuple[int, int], over: float, kinds: list[str], nbytes: int, ratio: int
) -> None:
    topology = star.cluster(*grid, over=over, latency=1e-9)
    sizes = [nbytes * ratio, *([nbytes] * (len(kinds) - 1))]
    calls = [("ring", kind, size, range(grid[0] * grid[1])) for kind, size in zip(kinds, sizes, strict=True)]
    assert as_activities(star, topology, calls) == pytest.approx(by_steps(topology, calls), rel=WITHIN)


S = 10**8
EIGHT, SIXTEEN = range(8), range(16)
LANES = [range(i, 16, 4) for i in range(4)]
NODES = [range(4 * k, 4 * k + 4) for k in range(4)]
ALL = "all_reduce"
RING, TREE = ("ring", ALL, S, SIXTEEN), ("tree", ALL, S, SIXTEEN)
TO_ALL = ("direct", "all_to_all", S, SIXTEEN)
LEVELS, HALVING = ("hierarchical", ALL, S, SIXTEEN), ("halving_doubling", ALL, S, SIXTEEN)


def lanes(name: str, kind: str) -> list[Call]:
    return [(name, kind, S, lane) for lane in LANES]


ONE_NIC_A_NODE: dict[str, list[Call]] = {
    "ring beside all-to-all": [("ring", ALL, S, EIGHT), ("direct", "all_to_all", S, EIGHT)],
    "ring beside all-to-all of half": [("ring", ALL, S, EIGHT), ("direct", "all_to_all", S, range(4))],
    "ring beside a ring of half": [("ring", ALL, S, EIGHT), ("ring", ALL, S, range(4))],
    "ring beside tree": [("ring", ALL, S, EIGHT), ("tree", ALL, S, EIGHT)],
    "ring beside halving-doubling": [("ring", ALL, S, EIGHT), ("halving_doubling", ALL, S, EIGHT)],
}
FOUR_NICS_A_NODE: dict[str, list[Call]] = {
    "ring beside tree": [RING, TREE],
    "ring beside all-to-all": [RING, TO_ALL],
    "rings on lanes beside all-to-all": [*lanes("ring", ALL), TO_ALL],
    "rings on lanes beside a ring": [*lanes("ring", ALL), RING],
    "rings in nodes beside a ring": [*(("ring", ALL, S, node) for node in NODES), RING],
    "all-to-all in nodes beside a ring": [*(("direct", "all_to_all", S, node) for node in NODES), RING],
    "two hierarchical": [LEVELS, LEVELS],
    "hierarchical beside all-to-all": [LEVELS, TO_ALL],
    "hierarchical beside ring": [LEVELS, RING],
    "halving-doubling beside ring": [HALVING, RING],
    "halving-doubling beside hierarchical": [HALVING, LEVELS],
}

BURSTS = (
    "a ring over nodes fills its NVLinks in bursts, at first all of them at once; at an even speed it leaves them free"
)
OFF = {
    ("all-to-all in nodes beside a ring", 1.0): BURSTS,
    ("all-to-all in nodes beside a ring", 4.0): BURSTS,
}
"""What is off by more than 5 % today, and why."""
SIDE_BY_SIDE = [
    pytest.param(
        grid,
        over,
        calls,
        id=f"{grid[1]} NICs, {over:g}:1, {name}",
        marks=[pytest.mark.xfail(strict=True, reason=OFF[name, over])] if (name, over) in OFF else [],
    )
    for grid, cases in (((8, 1), ONE_NIC_A_NODE), ((4, 4), FOUR_NICS_A_NODE))
    for over in (1.0, 4.0)
    for name, calls in cases.items()
]


@pytest.mark.parametrize(("grid", "over", "calls"), SIDE_BY_SIDE)
def test_side_by_side(star: ModuleType, grid: tuple[int, int], over: float, calls: list[Call]) -> None:
    """Two nodes a leaf with one NIC each, or one with four; uplinks in full or a quarter."""
    topology = star.cluster(*grid, leaf=2 if grid[1] == 1 else 1, over=over, latency=1e-6)
    assert as_activities(star, topology, calls) == pytest.approx(by_steps(topology, calls), rel=WITHIN)


ON_H100: dict[str, list[tuple[str, str]]] = {
    "ring": [("ring", ALL)],
    "all-gather": [("ring", "all_gather")],
    "hierarchical": [("hierarchical", ALL)],
    "halving-doubling": [("halving_doubling", ALL)],
    "all-to-all": [("direct", "all_to_all")],
    "two rings": [("ring", ALL), ("ring", ALL)],
    "two all-to-alls": [("direct", "all_to_all")] * 2,
    "two hierarchical": [("hierarchical", ALL)] * 2,
    "ring beside all-to-all": [("ring", ALL), ("direct", "all_to_all")],
    "hierarchical beside all-to-all": [("hierarchical", ALL), ("direct", "all_to_all")],
}


@pytest.mark.parametrize(
    ("name", "nodes"),
    [(name, nodes) for name in ON_H100 for nodes in (2, 4)],
)
def test_on_h100_nodes(star: ModuleType, name: str, nodes: int) -> None:
    """Without NCCL's protocols: latency and bandwidth of the links."""
    topology = replace(load_topology("dgx-h100", nodes=nodes), protocols={})
    calls = [(*which, 10**9, range(8 * nodes)) for which in ON_H100[name]]
    assert as_activities(star, topology, calls) == pytest.approx(by_steps(topology, calls), rel=WITHIN)
