"""What a call is refused for, and what it is warned of."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

import clustersim as cs


def faults(*args: object, **kwargs: object) -> list[tuple[str, object, object]]:
    with pytest.raises(cs.BadInput) as caught:
        cs.simulate(*args, **kwargs)  # type: ignore[arg-type]
    return [(f.key, f.value, f.nearest) for f in caught.value.faults]


def test_nothing_to_run_is_refused(star: ModuleType) -> None:
    cluster, idle = star.cluster(1, 2), star.job(cs.Program(), cs.Program(), name="idle")
    nobody = cs.Job(name="nobody", programs=(star.program(star.delay(1)),), program_of=np.zeros(0, np.int64))
    assert faults(cluster, []) == [("jobs", [], None)]
    assert faults(cluster, [idle, nobody], steps=0) == [("idle", 2, None), ("nobody", 0, None), ("steps", 0, 1)]


def test_places_that_do_not_exist(star: ModuleType) -> None:
    def sits(*devices: int) -> cs.Job:
        job: cs.Job = star.job(*[star.program(star.delay(1))] * 2, devices=np.array(devices, dtype=np.int64))
        return job

    cluster = star.cluster(1, 4)
    assert faults(cluster, sits(0, 4)) == [("job.devices", 4, 3)]
    assert faults(cluster, sits(-1, 0)) == [("job.devices", -1, 0)]
    assert faults(cluster, sits(0, 1, 2)) == [("job.devices", (3,), (2,))]
    assert faults(cluster, star.job(*[star.program(star.delay(1))] * 5)) == [("job.num_ranks", 5, 4)]


@pytest.mark.parametrize("fold", [True, False])
def test_ranks_that_share_a_device_are_warned_of(star: ModuleType, fold: bool) -> None:
    def works(kind: str, name: str) -> cs.Job:
        job: cs.Job = star.job(*[star.program(getattr(star, kind)(1000))] * 2, name=name)
        return job

    cluster = star.cluster(1, 2)
    apart = cs.simulate(cluster, works("gemm", "one"), fold=fold)
    assert apart.warnings == ()
    for kind, ns in (("gemm", 1000), ("sweep", 2000)):  # arithmetic is not slowed, memory is
        both = cs.simulate(cluster, [works(kind, "one"), works(kind, "two")], fold=fold)
        assert both.trace["end_ns"].unique().tolist() == [ns]
        assert both.warnings == ("2 devices run several ranks: these share memory bandwidth, but compute as if alone",)


def alternating(star: ModuleType, *steps: int) -> cs.Job:
    """One rank whose steps take so long [ns], one after the other."""
    program = cs.Program("alternating")
    for ns in steps:
        program.add(star.delay(ns), stream="main")
        program.end_step()
    job: cs.Job = star.job(program)
    return job


def test_a_program_of_several_steps_is_played_twice_by_default(star: ModuleType) -> None:
    cluster = star.cluster(1, 1)
    said = cs.summary(cs.simulate(cluster, alternating(star, 300, 100)))
    assert said["step_times_s"] == pytest.approx([3e-7, 1e-7, 3e-7, 1e-7])
    assert said["step_time_s"] == pytest.approx(2e-7)
    assert said["warnings"] == []
    assert cs.simulate(cluster, alternating(star, 300)).inputs["steps"] == 1
    both = cs.simulate(cluster, [alternating(star, 1, 2), alternating(star, 1, 2, 3)])
    assert both.inputs["steps"] == 6  # three rounds of one and two of the other
    settles = replace(alternating(star, 300), rounds=3)
    assert cs.simulate(cluster, settles).inputs["steps"] == 3
    assert cs.simulate(cluster, [settles, alternating(star, 1, 2)]).inputs["steps"] == 4


@pytest.mark.parametrize(("steps", "seconds"), [(1, 3e-7), (2, 2e-7), (3, 2e-7), (4, 2e-7), (5, 2e-7)])
def test_the_steps_that_were_asked_for_are_recorded(star: ModuleType, steps: int, seconds: float) -> None:
    run = cs.simulate(star.cluster(1, 1), alternating(star, 300, 100), steps=steps)
    said = cs.summary(run)
    assert said["step_times_s"] == pytest.approx([3e-7, 1e-7, 3e-7, 1e-7, 3e-7][:steps])
    assert said["step_time_s"] == pytest.approx(seconds)
    assert sum(value for value in said["breakdown_s"].values() if isinstance(value, float)) == pytest.approx(seconds)
    assert (said["num_ops"], run.trace["step"].tolist()) == (steps, list(range(steps)))
    played = f"job: a round of its programs is 2 steps, so {steps + 1} were played for {steps}"
    told = (f"{played}; rates of resources and coverage count all of them",)
    assert run.warnings == (told if steps % 2 else ())
