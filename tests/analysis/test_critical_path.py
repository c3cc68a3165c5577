"""The chain that sets the end."""

from __future__ import annotations

import pytest

from clustersim.analysis import critical_path
from clustersim.trace.frame import frame, frame_of


@pytest.fixture
def chain(scene):
    """Rank 1's compute releases a collective that both end with; rank 0 has something shorter beside it."""
    first = scene.lane(rank=0)
    first.add(scene.compute("short"), (0, 5, 20))
    first.add(scene.collective("tp"), (20, 50, 70), cause=(1, 0))
    first.add(scene.compute("last"), (70, 72, 90), cause=(0, 1))
    second = scene.lane(rank=1)
    second.add(scene.compute("long"), (0, 0, 50))
    second.add(scene.collective("tp"), (50, 50, 70), cause=(1, 0))
    return scene


def test_follows_causes_back_to_the_launch(chain):
    path = critical_path(frame(chain.record()))
    assert list(path["name"]) == ["long", "all_reduce tp", "last"]
    assert list(path["rank"]) == [1, 0, 0]
    assert list(path["duration_ns"]) == [50, 20, 18]
    assert list(path["gap_ns"]) == [0, 0, 2]


def test_durations_and_gaps_are_the_end_of_the_run(chain):
    trace = frame(chain.record())
    path = critical_path(trace)
    assert path["duration_ns"].sum() + path["gap_ns"].sum() == trace["end_ns"].max()


def test_a_late_launch_is_the_first_gap(scene):
    scene.lane().add(scene.compute(), (40, 40, 100))
    path = critical_path(frame(scene.record()))
    assert (path["gap_ns"].iloc[0], path["duration_ns"].sum()) == (40, 60)


def test_goes_through_the_steps(scene):
    scene.lane().add(scene.compute(), (0, 0, 10), (10, 10, 25))
    trace = frame(scene.record())
    trace["cause"] = [-1, 0]
    assert list(critical_path(trace)["step"]) == [0, 1]


def test_of_one_of_several_jobs(scene):
    scene.lane(job=0).add(scene.compute("a"), (0, 0, 90))
    scene.lane(job=1).add(scene.compute("b"), (0, 0, 30))
    trace = frame(scene.record())
    assert list(critical_path(trace)["name"]) == ["a"]
    assert list(critical_path(trace, run="train 1")["name"]) == ["b"]
    with pytest.raises(ValueError, match="run: 'x' is not in the trace"):
        critical_path(trace, run="x")


def test_what_has_no_path_is_refused(chain):
    record = chain.record()
    trace = frame(record)
    with pytest.raises(ValueError, match="no rows"):
        critical_path(trace.iloc[:0])
    with pytest.raises(ValueError, match="row 1 names 3 as its cause, which is not in the trace"):
        critical_path(trace[trace["rank"] == 0])
    record.lane_of[0][1] = 0
    with pytest.raises(ValueError, match="labels must be unique"):
        critical_path(frame_of(record, [0, 1]))


def test_a_cycle_is_refused(scene):
    lane = scene.lane()
    lane.add(scene.compute("a"), (0, 10, 10), cause=(0, 1))
    lane.add(scene.compute("b"), (0, 10, 10), cause=(0, 0))
    with pytest.raises(ValueError, match="starts before its cause"):
        critical_path(frame(scene.record()))
