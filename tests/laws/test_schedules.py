"""A simulated step takes its units in the order of the schedule's table, and as long as the table played alone."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

import pytest

import clustersim as cs
from clustersim.workload.schedule import SCHEDULES, Unit, ideal, placement_of, units_of
from clustersim.workload.schedule.limits import LIMITS

P, M, TP = 4, 8, 2
KINDS = {"forward": "F", "backward": "B", "backward input": "I", "backward weight": "W"}


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_a_step_follows_its_table(name: str) -> None:
    chunks = LIMITS[name].num_virtual[1] or 2
    schedule = SCHEDULES[name]
    table, placement = schedule(P, chunks, M), placement_of(schedule, P, chunks)
    plan = cs.ParallelPlan(tp=TP, pp=P, vpp=chunks, schedule=name)
    job = cs.training_step(
        cs.load_model("llama-3-8b"), plan, global_batch=M, micro_batch=1, seq_len=4096, num_devices=P * TP
    )
    trace = cs.simulate(cs.load_topology("dgx-h100", nodes=1), job).trace
    trace = trace[(trace["micro_batch"] >= 0) & ~trace["kind"].isin(["send", "recv"])]

    length = len(placement.routes[0])
    spans: dict[tuple[int, Unit], tuple[int, int]] = {}
    for (rank, phase, j, virtual), ops in trace.groupby(["rank", "phase", "micro_batch", "stage"], observed=True):
        route, k = divmod(virtual, length)
        stage, chunk = placement.routes[route][k]
        assert stage == rank // TP
        spans[stage, Unit(KINDS[phase], j, chunk)] = int(ops["start_ns"].min()), int(ops["end_ns"].max())
    assert spans.keys() == {(s, unit) for s, row in enumerate(table) for unit in units_of(row)}

    alone: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    paired: dict[tuple[int, int], list[int]] = defaultdict(list)
    for stage, row in enumerate(table):
        end = 0
        for entry in row:
            starts, ends = zip(*(spans[stage, unit] for unit in units_of([entry])), strict=True)
            assert min(starts) >= end, f"stage {stage} begins {entry} before what stands before it has ended"
            end = max(ends)
            if isinstance(entry, Unit):
                alone[entry.kind, stage, entry.chunk].append(end - starts[0])
            else:
                paired[stage, entry.forward.chunk].append(end - min(starts))

    def cost(kind: str, stage: int, chunk: int) -> float:
        return median(alone[kind, stage, chunk] or [0])

    def backward_input(stage: int, chunk: int) -> float:
        return cost("I", stage, chunk) or cost("B", stage, chunk)

    def backward_weight(stage: int, chunk: int) -> float:
        whole = cost("B", stage, chunk)
        return whole - backward_input(stage, chunk) if whole else cost("W", stage, chunk)

    played = ideal(
        table,
        placement,
        forward=lambda s, c: cost("F", s, c),
        backward_input=backward_input,
        backward_weight=backward_weight,
        overlapped=lambda s, c: median(paired[s, c]),
    )
    # Messages between stages are not in it; over NVLink they take well below 1 % of such a step.
    assert played.makespan <= trace["end_ns"].max() <= 1.01 * played.makespan
