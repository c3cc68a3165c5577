"""The bubble of pipeline schedules is that of the papers, exactly, where messages cost nothing.

With p stages, m micro-batches, v chunks a stage and t for one micro-batch forward and backward through a stage, a step
takes (m + (p-1)/v) · t. Huang et al., GPipe, 2019, section 2.3: a bubble of O((p-1)/(m+p-1)); Narayanan et al.,
Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021, sections 2.2.1 and 2.2.2:
(p-1)/m of the ideal time, divided by v when interleaved.
"""

from __future__ import annotations

from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clustersim.engine.simulate import simulate
from clustersim.trace.result import Result
from clustersim.workload.job import GroupFamily, Job
from clustersim.workload.program import Program
from clustersim.workload.schedule import Schedule, gpipe, interleaved, one_f_one_b

FORWARD, BACKWARD = 1200, 2400  # of one chunk [ns]


def pipeline(star: ModuleType, schedule: Schedule, p: int, v: int, m: int) -> Result:
    """One rank a stage; a unit waits for the unit of the same micro-batch on the virtual stage before it."""
    table = schedule(p, v, m)
    programs = []
    for stage, units in enumerate(table):
        program = Program(f"stage {stage}")
        for unit in units:
            virtual, forward = unit.chunk * p + stage, unit.kind == "F"
            way = "forward" if forward else "backward"
            is_first, is_last = virtual == (0 if forward else p * v - 1), virtual == (p * v - 1 if forward else 0)
            after = []
            if not is_first:
                receive = star.collective("recv", 0, f"{way} in")
                after.append(program.add(receive, stream=f"{way} in"))
            done = program.add(star.delay(FORWARD if forward else BACKWARD), stream="compute", after=after)
            if not is_last:
                program.add(star.collective("send", 0, f"{way} out"), stream=f"{way} out", after=[done])
        programs.append(program)
    there = np.array([[s, (s + 1) % p] for s in range(p if v > 1 else p - 1)]).reshape(-1, 2)
    families = tuple(
        GroupFamily(name=way, members=members, slots=(f"{way} out", f"{way} in"))
        for way, members in (("forward", there), ("backward", there[:, ::-1]))
        if len(members)
    )
    job = Job(name="pipeline", programs=tuple(programs), program_of=np.arange(p), families=families)
    return simulate(star.cluster(p, 1), job)


def bubble(run: Result, p: int) -> Fraction:
    """Idle fraction of all stages' time."""
    end = max(int(lane.end_ns.max()) for lane in run.record.lanes)
    busy = sum(
        int((lane.end_ns - lane.start_ns)[np.isin(lane.arrays.stream, [lane.arrays.streams.index("compute")])].sum())
        for lane in run.record.lanes
    )
    return 1 - Fraction(busy, end * p)


@pytest.mark.parametrize("schedule", [gpipe, one_f_one_b])
@pytest.mark.parametrize(("p", "m"), [(1, 3), (2, 2), (2, 7), (4, 4), (4, 16), (8, 8), (8, 5)])
def test_gpipe_and_1f1b(star: ModuleType, schedule: Any, p: int, m: int) -> None:
    assert bubble(pipeline(star, schedule, p, 1, m), p) == Fraction(p - 1, m + p - 1)


@pytest.mark.parametrize(("p", "v", "m"), [(2, 2, 2), (2, 3, 4), (4, 2, 4), (4, 2, 8), (4, 4, 8), (8, 2, 16)])
def test_interleaved(star: ModuleType, p: int, v: int, m: int) -> None:
    ideal, idle = m * v, p - 1  # in chunks of a stage, forward and backward
    assert bubble(pipeline(star, interleaved, p, v, m), p) == Fraction(idle, ideal + idle)


def test_a_straggler_stage_sets_the_pace(star: ModuleType) -> None:
    """A stage that takes k times as long: m · k · t, and the others' fill and drain once."""
    p, m, t = 4, 8, FORWARD + BACKWARD
    run = pipeline(star, gpipe, p, 1, m)
    table = run.record.jobs[0]
    slow = simulate(star.cluster(p, 1), table, perturb={"slow_ranks": {1: 2.0}})
    end = max(int(lane.end_ns.max()) for lane in slow.record.lanes)
    assert end == 2 * m * t + (p - 1) * t
