"""The check against random tables: those that some order of events could give pass, damaged ones fail by name."""

from __future__ import annotations

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import Placement, Table, Unit, bidirectional, check, ideal, loop, vee

PLACEMENTS = st.one_of(
    st.builds(loop, st.integers(1, 4), st.integers(1, 3)),
    st.builds(vee, st.integers(1, 4)),
    st.builds(bidirectional, st.integers(1, 4)),
)
Queue = deque[tuple[int, int, int]]


@st.composite
def legal_tables(draw: st.DrawFn) -> tuple[list[list[Unit]], Placement, int]:
    """A random run: at each moment one of the units that can start, messages between stages first in, first out."""
    placement = draw(PLACEMENTS)
    m = draw(st.integers(1, 4))
    queues: dict[tuple[int, int, str], Queue] = {}
    alone: set[tuple[str, int, int, int]] = set()  # messages from a stage to itself, and micro-batches to enter
    for j in range(m):
        route = placement.routes[draw(st.integers(0, len(placement.routes) - 1))]
        alone.add(("F", j, *route[0]))
    weights: set[tuple[int, int, int]] = set()
    table: list[list[Unit]] = [[] for _ in range(placement.num_stages)]

    def send(way: str, j: int, source: int, target: tuple[int, int]) -> None:
        if source == target[0]:
            alone.add((way, j, *target))
        else:
            queues.setdefault((source, target[0], way), deque()).append((j, *target))

    while True:
        ready = sorted(alone) + sorted((way, *queue[0]) for (_, _, way), queue in queues.items() if queue)
        ready += sorted(("W", *weight) for weight in weights)
        if not ready:
            return table, placement, m
        way, j, stage, chunk = draw(st.sampled_from(ready))
        if way == "W":
            weights.remove((j, stage, chunk))
            table[stage].append(Unit("W", j, chunk))
            continue
        alone.discard((way, j, stage, chunk))
        for (_, _, there), queue in queues.items():
            if there == way and queue and queue[0] == (j, stage, chunk):
                queue.popleft()
        ahead, behind = placement.after(stage, chunk), placement.before(stage, chunk)
        if way == "F":
            table[stage].append(Unit("F", j, chunk))
            if ahead:
                send("F", j, stage, ahead)
            else:
                alone.add(("B", j, stage, chunk))
        else:
            split = draw(st.booleans())
            table[stage].append(Unit("I" if split else "B", j, chunk))
            if split:
                weights.add((j, stage, chunk))
            if behind:
                send("B", j, stage, behind)


def faults_of(table: Table, placement: Placement, m: int) -> str:
    found = check(
        table,
        num_stages=placement.num_stages,
        num_virtual=placement.num_virtual,
        num_micro_batches=m,
        placement=placement,
    )
    return "\n".join(map(str, found))


@settings(deadline=None, max_examples=50)
@given(legal_tables())
def test_what_could_have_run_passes(drawn: tuple[list[list[Unit]], Placement, int]) -> None:
    table, placement, m = drawn
    assert faults_of(table, placement, m) == ""
    found = ideal(table, placement, forward=1, backward_input=1, backward_weight=1)
    per_route = [len(route) for route in placement.routes]
    assert sum(found.busy) == 3 * sum(per_route) * m / len(per_route)  # every route is equally long


@settings(deadline=None, max_examples=50)
@given(legal_tables(), st.data())
def test_a_missing_and_a_doubled_unit_are_named(
    drawn: tuple[list[list[Unit]], Placement, int], data: st.DataObject
) -> None:
    table, placement, m = drawn
    stage = data.draw(st.sampled_from([s for s, row in enumerate(table) if row]))
    at = data.draw(st.integers(0, len(table[stage]) - 1))
    unit = table[stage][at]
    doubled = [[*row, unit] if s == stage else row for s, row in enumerate(table)]
    told = faults_of(doubled, placement, m)
    assert f"stage {stage}" in told
    assert f"repeats 1 units ({unit})" in told
    short = [[u for k, u in enumerate(row) if s != stage or k != at] for s, row in enumerate(table)]
    assert f"misses 1 units ({unit})" in faults_of(short, placement, m)


@settings(deadline=None, max_examples=50)
@given(legal_tables(), st.data())
def test_a_foreign_unit_is_named(drawn: tuple[list[list[Unit]], Placement, int], data: st.DataObject) -> None:
    table, placement, m = drawn
    stage = data.draw(st.integers(0, placement.num_stages - 1))
    unit = data.draw(st.sampled_from([Unit("F", m), Unit("B", 0, placement.num_virtual)]))
    table[stage].append(unit)
    assert f"has unknown 1 units ({unit})" in faults_of(table, placement, m)


@settings(deadline=None, max_examples=50)
@given(legal_tables(), st.data())
def test_a_backward_before_its_forward_waits_for_it(
    drawn: tuple[list[list[Unit]], Placement, int], data: st.DataObject
) -> None:
    table, placement, m = drawn
    stage = data.draw(st.sampled_from([s for s, row in enumerate(table) if row]))
    row = table[stage]
    backward = data.draw(st.sampled_from([u for u in row if u.kind in "BI"]))
    row.remove(backward)
    row.insert(row.index(Unit("F", backward.micro_batch, backward.chunk)), backward)
    told = faults_of(table, placement, m)
    assert "deadlock" in told
    assert f"stage {stage} at " in told


@settings(deadline=None, max_examples=50)
@given(legal_tables(), st.data())
def test_weights_before_their_input_wait_for_it(
    drawn: tuple[list[list[Unit]], Placement, int], data: st.DataObject
) -> None:
    table, placement, m = drawn
    split = [(s, u) for s, row in enumerate(table) for u in row if u.kind == "W"]
    if not split:
        return
    stage, unit = data.draw(st.sampled_from(split))
    row = table[stage]
    row.remove(unit)
    row.insert(row.index(Unit("I", unit.micro_batch, unit.chunk)), unit)
    told = faults_of(table, placement, m)
    assert f"stage {stage} at {unit} waits for I{unit.micro_batch}.{unit.chunk} of stage {stage}" in told


def test_a_micro_batch_on_two_routes() -> None:
    down = [Unit("F", 0), Unit("B", 0)]
    up = [Unit("F", 1, 1), Unit("B", 1, 1)]
    assert faults_of([[*down[:1], *up, *down[1:]], [*up[:1], *down, *up[1:]]], bidirectional(2), 2) == ""
    lost = [Unit("F", 0, 1), Unit("B", 0, 1)]
    told = faults_of([[*down, *up], [*up, *lost]], bidirectional(2), 2)
    assert "'stage 1' misses 2 units (B0.0, F0.0)" in told
    assert "'stage 1' has unknown 2 units (B0.1, F0.1)" in told
