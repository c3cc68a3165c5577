"""Whole collectives against the same ones played transfer by transfer: times within 5 %, alone and side by side.

What is known to be off by more stands here too, with the reason. The reference itself is a textbook's: a ring passes
each block once round in one message, where NCCL cuts large ones to its buffers' size and keeps several in flight, so
that its rings hide more latency and pay for each chunk. With a library's cards, which say what that costs, neither
the reference nor what is compared with it here applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from hypothesis import example, given, settings
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
FEW_SLICES = 16
Call = tuple[str, str, int, Sequence[int]]
"""(algorithm, kind, bytes, devices)"""

BOTH: dict[str, tuple[Algorithm, Stepper]] = {
    "direct": (direct.direct, direct_steps.direct),
    "halving_doubling": (halving_doubling.halving_doubling, halving_doubling_steps.halving_doubling),
    "hierarchical": (hierarchical.hierarchical, hierarchical_steps.hierarchical),
    "ring": (ring.ring, ring_steps.ring),
    "tree": (tree.tree, tree_steps.tree),
}
RINGS = [("ring", kind) for kind in ring.KINDS[:3]]
CHAINS = [(name, kind) for name in ("ring", "tree") for kind in ("broadcast", "reduce")]
LOCKSTEP = [
    *RINGS,
    *(("hierarchical", kind) for kind in hierarchical.KINDS),
    *(("halving_doubling", kind) for kind in halving_doubling.KINDS),
    *(("direct", kind) for kind in direct.KINDS),
]
GRIDS = [(1, 2), (1, 8), (5, 1), (8, 1), (2, 2), (2, 4), (3, 3), (4, 4), (2, 8), (4, 8)]
NBYTES = st.floats(3.5, 10.2).map(lambda x: round(10**x))
LATENCY = st.floats(-9, -3).map(lambda x: round(10**x, 9))
NVLINK = st.sampled_from([1e11, 4e11])


def shape_of(topology: Topology, devices: Sequence[int]) -> GroupShape:
    node = topology.node_of[np.asarray(devices)].tolist()
    return GroupShape(node=np.array([node.index(of) for of in node]))


def by_steps(topology: Topology, calls: Sequence[Call], few: int = FEW_SLICES) -> NDArray[np.float64]:
    """Ends [s]; chains and trees, which pass a whole part along, in chunks as small as one likes.

    Filling a pipeline of k slices costs in proportion to 1/k, so that twice the time of 2k less that of k has none.
    """

    def played(slices: int) -> NDArray[np.float64]:
        collectives = []
        for name, kind, nbytes, devices in calls:
            passed = name == "tree" or kind in ("broadcast", "reduce")
            schedule = BOTH[name][1](kind, nbytes, shape_of(topology, devices), slices if passed else 1)
            collectives.append(StepwiseCollective(schedule=schedule, devices=np.asarray(devices)))
        return stepwise(topology, collectives)

    if any(name == "tree" or kind in ("broadcast", "reduce") for name, kind, _, _ in calls):
        return 2 * played(2 * few) - played(few)
    return played(1)


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


def alone(topology: Topology, call: Call) -> float:
    """Time of a collective with nothing beside it [s]."""
    name, kind, nbytes, devices = call
    cost = group_cost(topology, np.asarray(devices)[None], (BOTH[name][0](kind, nbytes, shape_of(topology, devices)),))
    return float(cost.ns[0, 0]) / 1e9


def parts(topology: Topology, call: Call) -> tuple[float, float]:
    """Latency of all steps, and time of all bytes, of a collective alone [s]."""
    name, kind, nbytes, devices = call
    shape = shape_of(topology, devices)
    empty = alone(topology, (name, kind, 0, devices))
    traffic = BOTH[name][0](kind, nbytes, shape)
    cost = group_cost(topology, np.asarray(devices)[None], (traffic,))
    return empty, float((cost.load[:, 0] / topology.resources.capacity[cost.row]).max())


@settings(max_examples=75, deadline=None)
@given(
    grid=st.sampled_from(GRIDS),
    which=st.sampled_from(LOCKSTEP),
    nbytes=st.floats(3.5, 9.5).map(lambda x: round(10**x)),
    latency=st.integers(0, 6).map(lambda x: 10.0**x * 1e-9),
)
def test_alone_in_step(
    star: ModuleType, grid: tuple[int, int], which: tuple[str, str], nbytes: int, latency: float
) -> None:
    """Whatever waits for its last message before it sends the next: latencies and bytes add up, HBM included."""
    topology = star.cluster(*grid, latency=latency)
    if which[0] == "ring" and min(grid) > 1:
        grid = (1, grid[1])
    calls = [(*which, nbytes, range(grid[0] * grid[1]))]
    assert as_activities(star, topology, calls) == pytest.approx(by_steps(topology, calls), rel=WITHIN, abs=2e-9)


@settings(max_examples=100, deadline=None)
@given(
    grid=st.sampled_from(GRIDS),
    over=st.sampled_from([None, 1.0, 4.0]),
    which=st.sampled_from(LOCKSTEP),
    nbytes=NBYTES,
    latency=LATENCY,
    nvlink=NVLINK,
)
def test_alone(
    star: ModuleType,
    grid: tuple[int, int],
    over: float | None,
    which: tuple[str, str],
    nbytes: int,
    latency: float,
    nvlink: float,
) -> None:
    """Whatever passes on or exchanges blocks, over links of six orders of latency and of unequal bandwidth.

    Two nodes share a leaf's uplinks, in full or a quarter, where ``over`` is given: rings have near edges and far ones.
    There is no HBM to wait for, which the reference does not play. Blocks of which a byte is more than a hundredth are
    equal: see test_blocks_of_few_bytes.
    """
    if nbytes < 100 * (grid[0] * grid[1]) ** 2:
        nbytes -= nbytes % (grid[0] * grid[1]) ** 2
    if which[0] == "halving_doubling" and grid[0] * grid[1] & (grid[0] * grid[1] - 1):
        over = None  # see test_alone_out_of_step
    topology = star.cluster(*grid, leaf=2 if over else 1, over=over or 1.0, latency=latency, nvlink=nvlink)
    topology = replace(topology, local={name: path for name, path in topology.local.items() if name != "hbm"})
    call = (*which, nbytes, range(grid[0] * grid[1]))
    assert alone(topology, call) == pytest.approx(by_steps(topology, [call])[0], rel=WITHIN, abs=2e-9)


@settings(max_examples=30, deadline=None)
@given(nbytes=st.integers(1000, 6000), kind=st.sampled_from(["all_gather", "reduce_scatter"]))
@example(nbytes=3162, kind="all_gather")
@example(nbytes=3312, kind="all_gather")
def test_blocks_of_few_bytes(star: ModuleType, nbytes: int, kind: str) -> None:
    """Blocks of 8 to 47 bytes of which some have a byte more: whole bytes put a ring out of step, as forks do.

    Equal blocks of all rings meet on an uplink at once; these come one after another, and are there up to a fifth
    sooner. Nobody sends such blocks; what is said is as in test_alone_out_of_step.
    """
    topology = star.cluster(2, 8, leaf=2, latency=1e-9, nvlink=1e11)
    topology = replace(topology, local={name: path for name, path in topology.local.items() if name != "hbm"})
    call = ("ring", kind, nbytes, range(16))
    (played,) = by_steps(topology, [call])
    assert 0.92 * played - 2e-9 <= alone(topology, call) <= 1.25 * played + 2e-9


@settings(max_examples=30, deadline=None)
@given(
    case=st.sampled_from(
        [
            *((grid, which) for grid in [(1, 2), (1, 8), (8, 1), (2, 4), (4, 2), (4, 4)] for which in CHAINS),
            *((grid, ("tree", "all_reduce")) for grid in [(1, 2), (1, 4), (1, 8), (2, 4), (4, 2)]),
        ]
    ),
    nbytes=NBYTES,
    latency=LATENCY,
)
def test_alone_in_chunks(
    star: ModuleType, case: tuple[tuple[int, int], tuple[str, str]], nbytes: int, latency: float
) -> None:
    """Chains, and what goes up a tree and down again, in chunks as small as one likes."""
    grid, which = case
    topology = star.cluster(*grid, latency=latency)
    call = (*which, nbytes, range(grid[0] * grid[1]))
    assert alone(topology, call) == pytest.approx(by_steps(topology, [call])[0], rel=WITHIN, abs=2e-9)


@settings(max_examples=20, deadline=None)
@given(
    case=st.sampled_from(
        [
            *((grid, None, ("tree", "all_reduce")) for grid in [(5, 1), (8, 1), (3, 3), (4, 4)]),
            *((grid, 4.0, which) for grid in [(5, 1), (4, 2), (4, 4)] for which in CHAINS),
            *(((5, 1), 4.0, ("halving_doubling", kind)) for kind in halving_doubling.KINDS),
        ]
    ),
    nbytes=NBYTES,
    latency=LATENCY,
)
def test_alone_out_of_step(
    star: ModuleType, case: tuple[tuple[int, int], float | None, tuple[str, str]], nbytes: int, latency: float
) -> None:
    """At most a quarter too long, or 8 % too short, where what shares a link comes and goes there at different times.

    That is so on the way up and down a tree of several nodes, for chains that meet on one leaf's uplink, and for
    exchanges there that some members begin earlier than others.
    """
    grid, over, which = case
    topology = star.cluster(*grid, leaf=2 if over else 1, over=over or 1.0, latency=latency)
    call = (*which, nbytes, range(grid[0] * grid[1]))
    (played,) = by_steps(topology, [call])
    assert 0.92 * played - 4e-9 <= alone(topology, call) <= 1.25 * played + 4e-9


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
OFF = {("all-to-all in nodes beside a ring", 4.0): BURSTS}
"""What is off by more than 5 % today, and why. A library's buffers would hold most of what runs ahead back."""
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


def in_bursts(case: ParameterSet) -> bool:
    """Whether messages of a ring over nodes meet others inside these."""
    return "in nodes beside a ring" in str(case.id)


@settings(max_examples=40, deadline=None)
@given(
    case=st.sampled_from([case.values for case in SIDE_BY_SIDE if "tree" not in str(case.id) and not in_bursts(case)]),
    nbytes=NBYTES,
    latency=LATENCY,
)
def test_side_by_side_at_any_size(
    star: ModuleType, case: tuple[tuple[int, int], float, list[Call]], nbytes: int, latency: float
) -> None:
    """Within 5 % where bytes take ten times as long as latencies, or latencies twenty times as long as bytes.

    A collective at an even speed loads its links less and longer than one that waits and bursts in turn. Where latency
    and bytes are alike, what meets in bursts takes up to half as long again as said here, and more rarely a sixth less.
    To wait first and then to load the links in full is right for equal collectives, whose bursts meet, and off by as
    much the other way for others.
    """
    grid, over, calls = case
    calls = [(algorithm, kind, nbytes, devices) for algorithm, kind, _, devices in calls]
    topology = star.cluster(*grid, leaf=2 if grid[1] == 1 else 1, over=over, latency=latency)
    of_latency, of_bytes = np.array([parts(topology, call) for call in calls]).T
    ratio = as_activities(star, topology, calls) / by_steps(topology, calls)
    assert (ratio >= 0.60).all()
    assert (ratio <= 1.20).all()
    if (of_bytes > 10 * of_latency).all() or len(calls) * of_bytes.max() < of_latency.min() / 20:
        assert ratio == pytest.approx(1, rel=WITHIN)


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
