"""The trace as a DataFrame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from clustersim.trace.frame import frame, frame_of
from clustersim.trace.schema import CATEGORIES, COLUMNS
from clustersim.workload.job import GroupFamily


@pytest.fixture
def two_classes(scene):
    """Rank 0 stands for ranks 0 and 1, rank 2 for itself; two steps."""
    first = scene.lane(rank=0, multiplicity=2, groups={"tp": "tp/tp/0"})
    first.add(scene.compute(), (0, 0, 10), (30, 30, 45), phase="forward", micro_batch=0, layer=3, stage=1)
    first.add(scene.collective("tp"), (10, 12, 20), (45, 45, 50), stream="tp", cause=(1, 0))
    second = scene.lane(rank=2)
    second.add(scene.compute("head"), (0, 5, 12), (30, 30, 40))
    return scene


def test_columns_are_the_schemas(two_classes):
    trace = frame(two_classes.record())
    assert list(trace.columns) == [c.name for c in COLUMNS]
    assert [str(trace[c.name].dtype) for c in COLUMNS] == [c.dtype for c in COLUMNS]
    assert list(trace["category"].cat.categories) == list(CATEGORIES)


def test_rows_are_the_records(two_classes):
    trace = frame(two_classes.record())
    assert list(trace.index) == [0, 1, 2, 3, 4, 5]
    row = trace.loc[1]
    assert (row["name"], row["kind"], row["category"]) == ("all_reduce tp", "all_reduce", "communication")
    assert (row["run"], row["step"], row["rank"], row["multiplicity"], row["stream"]) == ("train", 0, 0, 2, "tp")
    assert (row["ready_ns"], row["start_ns"], row["end_ns"], row["wait_ns"]) == (10, 12, 20, 2)
    assert (row["nbytes"], row["flops"], row["group"], row["bound"]) == (64, 0, "tp/tp/0", "tensor")
    assert (row["micro_batch"], row["stage"], row["layer"], row["phase"]) == (-1, -1, -1, "")
    assert trace.loc[row["cause"], "name"] == "head"
    first = trace.loc[2]
    assert (first["step"], first["op_id"], first["flops"], first["nbytes"]) == (1, 0, 2007, 50)
    assert (first["micro_batch"], first["stage"], first["layer"], first["phase"]) == (0, 1, 3, "forward")
    assert first["cause"] == -1
    assert first["group"] == ""


def test_some_lanes_keep_their_labels(two_classes):
    record = two_classes.record()
    pd.testing.assert_frame_equal(
        frame(record, lanes=[1]), frame(record).loc[[4, 5]], check_categorical=False, check_index_type=False
    )


def test_ops_that_did_not_end_are_counted_not_shown(scene):
    lane = scene.lane()
    lane.add(scene.compute(), (0, 0, 10))
    lane.add(scene.collective("tp"), (10, 11, -1), stream="tp")
    lane.add(scene.compute("next"), (-1, -1, -1))
    lane.add(scene.copy(), (0, 0, 4), stream="copy")
    trace = frame(scene.record("interrupted"))
    assert list(trace.index) == [0, 3]
    assert trace.attrs == {"unfinished": 1, "not_started": 1}


def test_two_jobs_of_one_name_stay_apart(scene):
    for job in (0, 1):
        scene.lane(job=job).add(scene.compute(), (0, 0, 10))
    record = scene.record()
    renamed = record.jobs[0]
    object.__setattr__(record, "jobs", (renamed, renamed))
    assert list(frame(record)["run"]) == ["train", "train (2)"]


def test_rows_of_a_rank_carry_its_own_number_and_groups(scene):
    members = np.array([[0, 1], [2, 3]])
    scene.families = [(GroupFamily(name="tp", members=members, slots=("out", "in")),)]
    for rank, slot in ((0, "out"), (1, "in")):
        lane = scene.lane(rank=rank, multiplicity=2, groups={slot: "tp/tp/0"})
        op = scene.collective("tp")
        lane.add(type(op)(name=slot, kind="send", slot=slot, nbytes=8, axis="tp"), (0, 0, 10 + rank), cause=(0, 0))
    record = scene.record()
    object.__setattr__(record, "lane_of", (np.array([0, 1, 0, 1]),))
    trace = frame_of(record, [3, 2])
    assert list(trace["rank"]) == [3, 2]
    assert list(trace["multiplicity"]) == [1, 1]
    assert list(trace["end_ns"]) == [11, 10]
    assert list(trace["group"]) == ["tp/tp/1", "tp/tp/1"]
    assert list(trace.index) == [1, 0]
    assert list(trace["cause"]) == [0, 0]


@pytest.mark.parametrize("rank", [-1, 3])
def test_a_rank_that_is_not_there_is_refused(two_classes, rank):
    with pytest.raises(ValueError, match=f"ranks: {rank} must be one of train's, 0 to 2"):
        frame_of(two_classes.record(), [rank])
