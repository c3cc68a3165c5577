"""Placements by list scheduling are never slower than one device and never faster than the best there is."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.faults import BadInput
from clustersim.workload.graph import Estimate, Graph, GraphOp
from clustersim.workload.graph.schedule import ListSchedule
from clustersim.workload.graph.spread import spread
from clustersim.workload.graph.tasks import Tasks, resolve

FAST, SLOW = Estimate(bandwidth=1e9, latency=1e-6), Estimate(bandwidth=1e6)


def graph(*rows: tuple[str, float, str], out: float = 1e5) -> Graph:
    """(name, seconds, after): forward ops of one sample, each with an output of ``out`` bytes."""
    return Graph(
        name="g",
        ops=tuple(GraphOp(name=n, seconds=s, out_nbytes=out, after=tuple(after.split())) for n, s, after in rows),
    )


def makespan(tasks: Tasks, device: dict[int, int], order: tuple[int, ...], estimate: Estimate) -> float:
    """The step when tasks run in this order, each as soon as its device and its inputs are there."""
    free: dict[int, float] = {}
    end: dict[int, float] = {}
    for k in order:
        d = device[tasks.group[k]]
        at = free.get(d, 0.0)
        for edge in tasks.edges:
            if edge.after == k:
                same = device[tasks.group[edge.before]] == d
                at = max(at, end[edge.before] + (0.0 if same else estimate.transfer(edge.nbytes)))
        end[k] = free[d] = at + estimate.compute(tasks.tasks[k].op)
    return max(end.values())


def orders(tasks: Tasks) -> list[tuple[int, ...]]:
    """Every order in which each task follows those it waits for."""
    pairs = [(e.before, e.after) for e in tasks.edges]
    found = []
    for order in permutations(range(len(tasks.tasks))):
        place = {k: p for p, k in enumerate(order)}
        if all(place[a] < place[b] for a, b in pairs):
            found.append(order)
    return found


def best(tasks: Tasks, num_devices: int, estimate: Estimate) -> float:
    """The shortest step over all placements and all orders."""
    groups = sorted(set(tasks.group))
    possible = orders(tasks)
    return min(
        makespan(tasks, dict(zip(groups, devices, strict=True)), order, estimate)
        for devices in product(range(num_devices), repeat=len(groups))
        for order in possible
    )


def alone(g: Graph) -> float:
    return 3 * sum(op.seconds or 0 for op in g.ops)


DIAMOND = graph(("a", 1e-3, ""), ("b", 2e-3, "a"), ("c", 2e-3, "a"), ("d", 1e-3, "b c"))
CHAIN = graph(("a", 1e-3, ""), ("b", 2e-3, "a"), ("c", 2e-3, "b"), ("d", 1e-3, "c"))
APART = graph(("a", 3e-3, ""), ("b", 2e-3, ""), ("c", 2e-3, ""), ("d", 2e-3, ""))


@pytest.mark.parametrize("g", [DIAMOND, CHAIN, APART], ids=["diamond", "chain", "apart"])
@pytest.mark.parametrize("estimate", [FAST, SLOW], ids=["fast", "slow"])
def test_list_is_between_the_best_and_one_device(g: Graph, estimate: Estimate) -> None:
    placed = spread(g, batch=1, num_devices=2, placement="list", estimate=estimate)
    assert placed.estimate_s is not None
    shortest = best(placed.tasks, 2, estimate)
    assert shortest <= placed.estimate_s + 1e-12 <= alone(g) + 2e-12
    assert placed.estimate_s <= 1.15 * shortest


def test_a_diamond_runs_its_two_sides_at_once() -> None:
    placed = spread(DIAMOND, batch=1, num_devices=2, placement="list", estimate=FAST)
    a, b, c, d = placed.device[:4]
    assert b != c
    transfer = FAST.transfer(100_000)
    assert a == d or {a, d} == {b, c}
    # the sides cost 2 + 4 ms once instead of twice; both passes cross over and back
    assert placed.estimate_s == pytest.approx(12e-3 + 4 * transfer) or placed.estimate_s == pytest.approx(
        12e-3 + 2 * transfer
    )


def test_a_chain_gains_nothing_and_stays_where_it_is() -> None:
    placed = spread(CHAIN, batch=1, num_devices=2, placement="list", estimate=FAST)
    assert set(placed.device) == {0}
    assert placed.estimate_s == pytest.approx(alone(CHAIN))


@settings(max_examples=12, deadline=None)
@given(
    seconds=st.lists(st.integers(1, 9), min_size=3, max_size=3),
    links=st.lists(st.booleans(), min_size=3, max_size=3),
    out=st.sampled_from([0.0, 1e6, 4e6]),
)
def test_list_on_any_small_graph(seconds: list[int], links: list[bool], out: float) -> None:
    names = ["a", "b", "c"]
    pairs = [pair for pair, there in zip([("a", "b"), ("a", "c"), ("b", "c")], links, strict=True) if there]
    rows = [(n, s * 1e-3, " ".join(a for a, b in pairs if b == n)) for n, s in zip(names, seconds, strict=True)]
    g = graph(*rows, out=out)
    placed = spread(g, batch=1, num_devices=2, placement="list", estimate=FAST)
    shortest = best(placed.tasks, 2, FAST)
    assert placed.estimate_s is not None
    assert shortest <= placed.estimate_s + 1e-12 <= alone(g) + 2e-12


def test_a_placement_is_given_up_where_it_cannot_be_shorter() -> None:
    schedule = ListSchedule(resolve(DIAMOND, batch=1), 2, FAST)
    for devices in product(range(2), repeat=len(set(schedule.tasks.group))):
        placed = dict(zip(sorted(set(schedule.tasks.group)), devices, strict=True))
        makespan = schedule.times(placed).makespan
        assert schedule.makespan_below(makespan * 1.000001, placed) == makespan
        assert [schedule.makespan_below(makespan * part, placed) for part in (1.0, 0.999, 0.3)] == [None] * 3


def test_the_order_follows_the_graph() -> None:
    tasks = resolve(DIAMOND, batch=1)
    schedule = ListSchedule(tasks, 2, FAST)
    for order in (tasks.order, schedule.times(schedule.greedy()).order):
        place = {k: p for p, k in enumerate(order)}
        assert sorted(order) == list(range(8))
        assert all(place[e.before] < place[e.after] for e in tasks.edges)


def test_ops_that_share_weights_share_a_device() -> None:
    steps = [GraphOp(name=f"t{k}", seconds=1e-3, after=(f"t{k - 1}",) if k else (), beside="t0") for k in range(3)]
    others = [GraphOp(name=f"u{k}", seconds=1e-3, out_nbytes=10, after=(f"t{k}",), beside="u0") for k in range(3)]
    placed = spread(Graph(name="lstm", ops=(*steps, *others)), batch=1, num_devices=2, placement="list", estimate=FAST)
    assert placed.device[:6] in ((0, 0, 0, 1, 1, 1), (1, 1, 1, 0, 0, 0))
    # a wavefront: 4 forward slots of 1 ms and 4 backward ones of 2 ms, instead of 6 and 6
    assert placed.estimate_s == pytest.approx(12e-3, rel=1e-2)


def test_placements_of_ones_own_and_their_faults() -> None:
    def by_name(g: Graph, devices: int) -> list[int]:
        return [0 if op.name < "c" else devices - 1 for op in g.ops]

    placed = spread(CHAIN, batch=1, num_devices=2, placement=by_name, estimate=None)
    assert placed.device == (0, 0, 1, 1, 0, 0, 1, 1)
    assert placed.estimate_s is None
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"placement": "lists"}, "placement"),
        ({"placement": "list"}, "estimate"),
        ({"placement": lambda g, m: [0, 1]}, "placement"),
        ({"placement": lambda g, m: [0, 1, 2, 0]}, "g.c.device"),
        ({"placement": "column"}, "g.a.device"),
    ]
    for arguments, key in wrong:
        with pytest.raises(BadInput) as caught:
            spread(CHAIN, batch=1, num_devices=2, estimate=None, **arguments)
        assert caught.value.faults[0].key == key
    work = Graph(name="w", ops=(GraphOp(name="a", flops=1e9),))
    with pytest.raises(BadInput, match=r"estimate.gpu"):
        spread(work, batch=1, num_devices=2, placement="list", estimate=FAST)
    pair = Graph(
        name="p", ops=(GraphOp(name="a", seconds=1, device=0), GraphOp(name="b", seconds=1, beside="a", device=1))
    )
    with pytest.raises(BadInput, match="whose weights it uses"):
        spread(pair, batch=1, num_devices=2, placement="column", estimate=None)
