"""Time steps: what stages do beside each other, and when what they make is received."""

from __future__ import annotations

import pytest

import clustersim as cs
from clustersim.workload.op import Collective
from clustersim.workload.schedule import Table, Unit, interleaved
from clustersim.workload.schedule.time_steps import posts, time_steps

SIZES = [(2, 2, 2), (4, 2, 8), (8, 2, 16), (4, 3, 8)]


@pytest.mark.parametrize(("p", "v", "m"), SIZES)
def test_units_that_take_a_step_each_are_as_quick_as_the_bubble_allows(p: int, v: int, m: int) -> None:
    steps = time_steps(interleaved(p, v, m))
    assert 1 + max(map(max, steps)) == 2 * (m * v + p - 1)
    assert all(row == sorted(set(row)) for row in steps)


@pytest.mark.parametrize(("p", "v", "m"), SIZES)
def test_a_message_is_received_in_the_step_in_which_it_is_made(p: int, v: int, m: int) -> None:
    table = interleaved(p, v, m)
    steps = time_steps(table)
    for stage in range(p):
        behind = posts(table, stage)
        received = [unit for units in behind.values() for unit in units]
        inside = {("F", 0): stage == 0, ("B", v - 1): stage == p - 1}
        assert set(received) == {u for u in table[stage] if not inside.get((u.kind, u.chunk), False)}
        for position, units in behind.items():
            for unit in units:
                by = (stage + (1 if unit.kind == "B" else -1)) % p
                chunk = unit.chunk + ((by < stage) if unit.kind == "B" else -(by > stage))
                made = steps[by][table[by].index(Unit(unit.kind, unit.micro_batch, chunk))]
                assert position < table[stage].index(unit)
                assert position < 0 or steps[stage][position] <= made
                assert position + 1 == len(steps[stage]) or steps[stage][position + 1] > made


def test_a_table_that_cannot_go_on_is_refused() -> None:
    table: Table = [[Unit("B", 0), Unit("F", 0)], [Unit("F", 0), Unit("B", 0)]]
    with pytest.raises(ValueError, match="no stage can go on after time step 0"):
        time_steps(table)


def run(model: cs.Model, **plan: bool) -> cs.Result:
    job = cs.training_step(
        model,
        cs.ParallelPlan(pp=4, vpp=2, schedule="interleaved", recompute="full", time_steps=plan["time_steps"]),
        global_batch=8,
        micro_batch=1,
        seq_len=2048,
        dtype="bf16",
        num_devices=4,
    )
    return cs.simulate(cs.load_topology("dgx-h100"), job)


def test_a_forward_beside_a_backward_takes_as_long(llama: cs.Model) -> None:
    """With backward passes thrice as long, 2·B for F + B in the steady state, as all else waits."""
    free, stepped = (cs.summary(run(llama, time_steps=flag))["step_time_s"] for flag in (False, True))
    assert 1.1 < stepped / free < 1.5


def test_nothing_else_changes(llama: cs.Model) -> None:
    free, stepped = (run(llama, time_steps=flag).record.lanes for flag in (False, True))
    for one, other in zip(free, stepped, strict=True):
        names = [
            sorted(a.ops[k].name for k in a.op if isinstance(a.ops[k], Collective)) for a in (one.arrays, other.arrays)
        ]
        assert names[0] == names[1]
