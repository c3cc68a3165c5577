"""Where steps begin and end."""

from __future__ import annotations

from clustersim.trace.steps import step_edges


def edges(scene, status="ok"):
    return step_edges(scene.record(status).lanes).tolist()


def test_a_step_ends_with_its_last_op_on_any_rank(scene):
    scene.lane(rank=0).add(scene.compute(), (0, 0, 10), (10, 10, 25))
    scene.lane(rank=1).add(scene.compute(), (0, 3, 14), (14, 14, 20))
    assert edges(scene) == [0, 14, 25]


def test_a_job_launched_late_begins_late(scene):
    scene.lane().add(scene.compute(), (100, 105, 110))
    assert edges(scene) == [100, 110]


def test_steps_that_overlap_end_in_order(scene):
    lane = scene.lane()
    lane.add(scene.compute(), (0, 0, 10), (10, 10, 20))
    lane.add(scene.host(), (10, 10, 30), (30, 20, 25), stream="host")
    assert edges(scene) == [0, 30, 30]


def test_an_incomplete_step_and_those_after_it_do_not_count(scene):
    scene.lane(rank=0).add(scene.compute(), (0, 0, 10), (10, 10, 20), (20, 20, -1))
    scene.lane(rank=1).add(scene.compute(), (0, 0, 10), (10, 10, -1), (-1, -1, -1))
    assert edges(scene, "interrupted") == [0, 10]


def test_steps_of_one_program_end_by_themselves(scene):
    lane = scene.lane()
    lane.add(scene.compute(), (0, 0, 10), (40, 40, 50))
    lane.add(scene.host(), (10, 10, 28), (50, 50, 68), stream="host")
    lane.end_step()
    lane.add(scene.compute("other"), (10, 10, 40), (50, 50, 80))
    assert edges(scene) == [0, 28, 40, 68, 80]


def test_a_step_in_which_a_rank_has_nothing_to_do(scene):
    idle, busy = scene.lane(rank=0), scene.lane(rank=1)
    idle.add(scene.compute(), (0, 0, 10), (10, 10, 20))
    busy.add(scene.compute(), (0, 0, 9), (30, 30, 39))
    for lane in (idle, busy):
        lane.end_step()
    busy.add(scene.compute(), (9, 9, 30), (39, 39, 60))
    idle.end_step()
    assert edges(scene) == [0, 10, 30, 39, 60]
