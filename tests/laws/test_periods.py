"""Programs of several steps: written out or played again, cut or whole, a step is the same step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustersim.analysis.critical_path import critical_path
from clustersim.analysis.summary import summary
from clustersim.engine.simulate import simulate
from clustersim.trace.steps import step_edges
from clustersim.workload.job import Job
from clustersim.workload.program import Program

LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=30)


def written_out(program: Program, times: int) -> Program:
    """The same ops so often, joined as rounds are."""
    arrays, whole = program.arrays(), Program(program.name)
    for number in range(times):
        offset = whole.extend(program)
        if number:
            for before, after in arrays.carries.tolist():
                whole.depend(offset + after, after=[offset - len(arrays) + before])
        if number < times - 1:
            whole.end_step()
    for before, after in arrays.carries.tolist():
        whole.carry(before + len(whole) - len(arrays), after)
    return whole


def out(job: Job, times: int) -> Job:
    return replace(job, programs=tuple(written_out(program, times) for program in job.programs))


@LAW
@given(data=st.data())
def test_rounds_written_out_are_rounds(data: st.DataObject, cases: Any, times_of: Any) -> None:
    """Same instants, whether a program is played again or its copies stand one behind the other in one of as many
    steps; with random factors too, which are keyed by step."""
    case = data.draw(cases(16))
    case = replace(case, perturb=case.perturb | {"jitter": data.draw(st.sampled_from([0.0, 0.1]))})
    times = data.draw(st.integers(1, 3))
    case = replace(case, rounds=case.rounds * times)
    one = case.run(fold=data.draw(st.booleans()))
    other = replace(case, jobs=tuple(out(job, times) for job in case.jobs), rounds=case.rounds // times)
    assert (other.jobs[0].period, other.steps) == (times * case.jobs[0].period, case.steps)
    run = other.run(fold=data.draw(st.booleans()))
    for j, job in enumerate(case.jobs):
        assert all(times_of(run, j, rank) == times_of(one, j, rank) for rank in range(job.num_ranks))
    assert summary(run)["step_times_s"] == summary(one)["step_times_s"]
    if run.fold == one.fold:
        assert run.trace["step"].tolist() == one.trace["step"].tolist()


@LAW
@given(data=st.data())
def test_a_run_that_ends_within_a_round_is_the_beginning_of_it(data: st.DataObject, cases: Any) -> None:
    case, fold = data.draw(cases(16)), data.draw(st.booleans())
    jobs = tuple(out(job, 3) for job in case.jobs)
    steps = data.draw(st.integers(1, jobs[0].period))
    cut, whole = (
        simulate(case.topology, jobs, steps=n, perturb=case.perturb, fold=fold) for n in (steps, jobs[0].period)
    )
    for lane, of in zip(cut.record.lanes, whole.record.lanes, strict=True):
        kept = of.step < steps
        for column in ("start_ns", "end_ns", "ready_ns"):
            assert (getattr(lane, column) == np.where(kept, getattr(of, column), -1)).all()
        assert lane.num_ops == kept.sum()
    for j, job in enumerate(jobs):
        of_cut, of_whole = ([lane for lane in run.record.lanes if lane.job == j] for run in (cut, whole))
        assert (step_edges(of_cut) == step_edges(of_whole)[: steps + 1]).all()
        path = critical_path(cut.trace, job.name)
        last = (cut.trace["run"] == job.name) & (cut.trace["step"] == steps - 1)
        assert path["duration_ns"].sum() + path["gap_ns"].sum() == cut.trace["end_ns"][last].max()
    assert set(cut.trace["step"]) == set(range(steps))
    assert cut.trace.attrs == {"unfinished": 0, "not_started": 0}
    assert any("were played for" in warning for warning in cut.warnings) == (steps < jobs[0].period)
