"""What each stage holds at its peak, on hand-made lanes."""

from __future__ import annotations

import pytest

from clustersim.analysis.stage_memory import stage_memory, worst_stage


def add_lane(scene, *, rank, stage, kept, workspace=5):
    """A forward pass that keeps, and a backward pass that needs room beside it."""
    lane = scene.lane(rank=rank)
    lane.program.resident["gpu/weights"] = 100
    where = {"stage": stage, "micro_batch": 3, "layer": 7}
    lane.add(scene.compute("forward"), (0, 0, 10), end_bytes={"gpu/activations": kept}, phase="forward", **where)
    lane.add(
        scene.compute("backward"),
        (10, 10, 30),
        start_bytes={"gpu/workspace": workspace},
        end_bytes={"gpu/activations": -kept, "gpu/workspace": -workspace},
        phase="backward",
        **where,
    )


def stages_of(run):
    return stage_memory(run.record, run.topology)


def test_the_owner_of_the_peak_is_the_op_that_reaches_it(scene):
    add_lane(scene, rank=0, stage=0, kept=40)
    (held,) = stages_of(scene.run(memory_bytes=1000))
    assert (held.peak_op, held.phase, held.layer, held.micro_batch) == ("backward", "backward", 7, 3)
    assert held.time_s == pytest.approx(10e-9)
    assert held.by_category == {"weights": 100, "activations": 40, "workspace": 5}
    assert (held.peak_bytes, held.room_bytes) == (145, 855)


def test_the_owner_is_the_op_whose_end_keeps_where_nothing_is_needed_beside_it(scene):
    add_lane(scene, rank=0, stage=0, kept=40, workspace=0)
    (held,) = stages_of(scene.run())
    assert (held.peak_op, held.phase) == ("forward", "forward")


def test_of_a_stage_the_fullest_rank_and_of_stages_the_one_with_the_least_room(scene):
    for rank, (stage, kept) in enumerate([(0, 10), (0, 30), (1, 20)]):
        add_lane(scene, rank=rank, stage=stage, kept=kept)
    stages = stages_of(scene.run(memory_bytes=1000))
    assert [(held.stage, held.rank, held.peak_bytes) for held in stages] == [(0, 1, 135), (1, 2, 125)]
    assert worst_stage(stages).rank == 1


def test_what_is_resident_alone_has_no_owner(scene):
    lane = scene.lane()
    lane.program.resident["gpu/weights"] = 7
    lane.add(scene.compute(), (0, 0, 1))
    (held,) = stages_of(scene.run())
    assert (held.peak_op, held.time_s, held.stage, held.peak_bytes) == (None, None, None, 7)
