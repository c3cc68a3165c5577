"""What does not fit."""

from __future__ import annotations

import numpy as np

from clustersim.analysis import out_of_memory
from clustersim.workload.job import Job


def verdict(run):
    return out_of_memory(run.record, run.topology)


def test_all_fits_to_the_byte(scene):
    scene.lane().add(scene.compute(), (0, 0, 1), start_bytes={"gpu/activations": 10})
    assert verdict(scene.run(memory_bytes=10)) is None
    assert verdict(scene.run(memory_bytes=9)).over_bytes == 1


def test_says_which_rank_which_op_and_by_how_much(scene):
    scene.lane(rank=0).add(scene.compute(), (0, 0, 1), start_bytes={"gpu/activations": 11})
    worst = scene.lane(rank=1)
    worst.program.resident["gpu/weights"] = 8
    worst.add(
        scene.compute("head"),
        (0, 0, 1),
        (1, 1, 2),
        start_bytes={"gpu/logits": 6},
        end_bytes={"gpu/logits": -5},
        stage=3,
    )
    found = verdict(scene.run(memory_bytes=10))
    assert (found.rank, found.stage, found.op, found.tier, found.category) == (1, 3, "head", "gpu", "weights")
    assert (found.needed_bytes, found.capacity_bytes, found.over_bytes) == (15, 10, 5)


def test_resident_bytes_alone(scene):
    lane = scene.lane()
    lane.program.resident["gpu/weights"] = 12
    lane.add(scene.compute(), (0, 0, 1))
    found = verdict(scene.run(memory_bytes=10))
    assert (found.op, found.stage, found.over_bytes) == (None, None, 2)


def test_ranks_of_a_node_share_its_host_and_its_drives(scene):
    for rank in range(3):
        lane = scene.lane(rank=rank)
        lane.program.resident["host_pinned/buffers"] = 4
        lane.program.resident["host_pageable/optimizer"] = 30
        lane.program.resident["nvme/optimizer"] = 9
        lane.add(scene.host(), (0, 0, 1))
    assert verdict(scene.run(tier_bytes={"host": 68, "nvme": 18})) is None
    found = verdict(scene.run(tier_bytes={"host": 67, "nvme": 18}))
    assert (found.tier, found.needed_bytes, found.category) == ("host", 68, "optimizer")
    assert verdict(scene.run(tier_bytes={"host": 68, "nvme": 17})).tier == "nvme"
    assert verdict(scene.run()) is None


def test_a_class_counts_once_for_each_of_its_ranks_on_a_node(scene):
    lane = scene.lane(multiplicity=4)
    lane.program.resident["host_pinned/buffers"] = 5
    lane.add(scene.host(), (0, 0, 1))
    assert verdict(scene.run(tier_bytes={"host": 9})).needed_bytes == 10


def test_two_jobs_on_one_gpu_add_up(scene):
    scene.lane(job=0).add(scene.compute(), (0, 0, 5), start_bytes={"gpu/a": 6}, end_bytes={"gpu/a": -6})
    scene.lane(job=1).add(scene.compute(), (4, 4, 9), start_bytes={"gpu/b": 5})
    run = scene.run(memory_bytes=10)
    found = verdict(run)
    assert (found.needed_bytes, found.rank, found.category) == (11, 0, "a")
    apart = run.record.jobs[1]
    moved = Job(name="b", programs=apart.programs, program_of=apart.program_of, devices=np.array([1]))
    object.__setattr__(run.record, "jobs", (run.record.jobs[0], moved))
    object.__setattr__(run.topology, "gpu_of", np.zeros(2, np.int64))
    assert verdict(run) is None
