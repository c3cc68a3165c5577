"""The check against schedules that are known to run, and against each way to break one."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import SCHEDULES, Table, Unit, check, gpipe, interleaved, one_f_one_b

SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4))


def end_of(table: Table, num_virtual: int, forward: Fraction, backward: Fraction) -> Fraction:
    """When the last unit ends, if each starts as soon as its stage and inputs are free; chunks share a stage's time."""
    p = len(table)
    ends: dict[tuple[str, int, int], Fraction] = {}
    free, position = [Fraction(0)] * p, [0] * p
    while any(position[s] < len(table[s]) for s in range(p)):
        for s in range(p):
            while position[s] < len(table[s]):
                u = table[s][position[s]]
                here = u.chunk * p + s
                if u.kind == "F":
                    needs = [("F", u.micro_batch, here - 1)] if here else []
                else:
                    needs = [("F", u.micro_batch, here)]
                    needs += [("B", u.micro_batch, here + 1)] if here < p * num_virtual - 1 else []
                if any(n not in ends for n in needs):
                    break
                takes = (forward if u.kind == "F" else backward) / num_virtual
                free[s] = max([free[s], *(ends[n] for n in needs)]) + takes
                ends[u.kind, u.micro_batch, here] = free[s]
                position[s] += 1
    return max(free)


@settings(deadline=None, max_examples=50)
@given(SHAPES)
def test_the_shipped_schedules_run(shape: tuple[int, int, int]) -> None:
    p, v, groups = shape
    for schedule, chunks, m in ((gpipe, 1, groups), (one_f_one_b, 1, groups), (interleaved, v, groups * p)):
        assert check(schedule(p, chunks, m), num_stages=p, num_virtual=chunks, num_micro_batches=m) == ()


@settings(deadline=None, max_examples=50)
@given(SHAPES)
def test_bubbles_are_the_published_ones(shape: tuple[int, int, int]) -> None:
    p, v, groups = shape
    f, b, m = Fraction(1), Fraction(2), groups * p
    # Narayanan et al. 2021, section 2.2: (p - 1)·(f + b) of bubble, and 1/v of it when interleaved.
    for name in ("gpipe", "1f1b"):
        assert end_of(SCHEDULES[name](p, 1, m), 1, f, b) == (m + p - 1) * (f + b)
    assert end_of(interleaved(p, v, m), v, f, b) == m * (f + b) + (p - 1) * (f + b) / v


def rules(table: Table, stages: int = 2, virtual: int = 1, micro_batches: int = 2) -> str:
    faults = check(table, num_stages=stages, num_virtual=virtual, num_micro_batches=micro_batches)
    assert all(f.key == "plan.schedule" for f in faults)
    return "\n".join(map(str, faults))


def test_a_stage_too_few() -> None:
    assert "must list the 2 stages" in rules(gpipe(1, 1, 2))


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ([Unit("F", 0), Unit("F", 1), Unit("B", 0)], "misses 1 units (B1.0)"),
        ([Unit("F", 0), Unit("F", 1), Unit("B", 0), Unit("B", 1), Unit("B", 1)], "repeats 1 units (B1.0)"),
        ([*gpipe(1, 1, 2)[0], Unit("F", 7)], "has unknown 1 units (F7.0)"),
        ([*gpipe(1, 1, 2)[0], Unit("F", 0, 1)], "has unknown 1 units (F0.1)"),
    ],
)
def test_an_incomplete_row(row: list[Unit], what: str) -> None:
    assert what in rules([gpipe(2, 1, 2)[0], row])


def test_a_backward_before_its_forward() -> None:
    row = [Unit("B", 0), Unit("F", 0), Unit("F", 1), Unit("B", 1)]
    assert "stage 1 at B0.0 waits for F0.0 of stage 1" in rules([gpipe(2, 1, 2)[0], row])


def test_stages_that_wait_for_each_other() -> None:
    # Stage 0 wants the gradient of micro-batch 0 before it sends micro-batch 1, stage 1 wants both first.
    table = [[Unit("F", 0), Unit("B", 0), Unit("F", 1), Unit("B", 1)], gpipe(1, 1, 2)[0]]
    message = rules(table)
    assert "stage 0 at B0.0 waits for B0.0 of stage 1" in message
    assert "stage 1 at F1.0 waits for F1.0 of stage 0" in message


def test_messages_received_in_another_order() -> None:
    swapped = [Unit("F", 1), Unit("F", 0), Unit("B", 1), Unit("B", 0)]
    message = rules([gpipe(2, 1, 2)[0], swapped])
    assert "stage 0 to 1 (F)" in message
    assert "message 0 sent is micro-batch 0 for virtual stage 1, received is 1 for 1" in message
