"""Where the time goes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.analysis import breakdown, summary
from clustersim.analysis.breakdown import axes_of_lanes, breakdown_ns, pools_of_lanes
from clustersim.analysis.partition import class_names
from clustersim.trace.frame import frame
from clustersim.trace.steps import step_edges

CLASSES = class_names()


@pytest.fixture
def pipeline(scene):
    """Stage 0 computes, sends, reduces; stage 1 waits for it, computes longer, and ends the step."""
    first = scene.lane(rank=0, multiplicity=4)
    first.add(scene.compute(), (0, 0, 100))
    first.add(scene.collective("pp", "send"), (100, 100, 130), stream="pp")
    first.add(scene.collective("dp"), (130, 150, 190), stream="dp")
    first.add(scene.optimizer(), (190, 190, 200))
    second = scene.lane(rank=4, multiplicity=4)
    second.add(scene.collective("pp", "recv"), (0, 100, 130), stream="pp")
    second.add(scene.compute(), (130, 130, 250))
    second.add(scene.copy("d2h"), (240, 245, 280), stream="copy")
    second.add(scene.drive(), (280, 280, 290), stream="drive")
    second.add(scene.host(), (290, 290, 300), stream="host")
    return scene


def nanoseconds(table, row):
    return {name: round(table.loc[row, name] * 1e9) for name in CLASSES if table.loc[row, name]}


def test_each_class_by_hand(pipeline):
    table = breakdown(frame(pipeline.record()))
    assert list(table["rank"]) == [0, 4]
    assert list(table["multiplicity"]) == [4, 4]
    assert list(table["duration"]) == [300e-9, 300e-9]
    assert nanoseconds(table, 0) == {
        "compute": 100,
        "exposed_comm.pp": 30,
        "wait": 20,
        "exposed_comm.dp": 40,
        "optimizer": 10,
        "bubble": 100,
    }
    assert nanoseconds(table, 1) == {
        "bubble": 100,
        "exposed_comm.pp": 30,
        "compute": 120,
        "exposed_copy": 40,
        "host": 10,
    }


def test_waiting_for_a_pool_has_its_name(scene):
    """A copy waits for a pinned buffer and a drive for its lock; of both at once the first by name counts."""
    lane = scene.lane()
    lane.add(scene.compute(), (0, 0, 50))
    lane.add(scene.copy("d2h"), (40, 80, 100), stream="copy", waits_for="pinned")
    lane.add(scene.drive(), (60, 110, 120), stream="drive", waits_for="lock")
    table = breakdown(frame(scene.record()))
    assert list(frame(scene.record())["pool"]) == ["", "pinned", "lock"]
    spent = {name: round(table.loc[0, name] * 1e9) for name in class_names(pools=["lock", "pinned"])}
    assert {name: ns for name, ns in spent.items() if ns} == {
        "compute": 50,
        "exposed_copy": 30,
        "wait.lock": 30,
        "wait.pinned": 10,
    }
    said = summary(scene.run())
    assert said["pool_wait_s"] == {"lock": 30e-9, "pinned": 10e-9}
    assert said["breakdown_s"]["wait"] == pytest.approx(40e-9)


def test_time_counts_in_the_step_in_which_it_runs(scene):
    fast = scene.lane(rank=0)
    fast.add(scene.compute(), (0, 0, 10), (10, 10, 20))
    slow = scene.lane(rank=1)
    slow.add(scene.compute(), (0, 0, 15), (15, 15, 30))
    table = breakdown(frame(scene.record())).set_index(["rank", "step"])
    in_ns = (table[["duration", "compute", "bubble"]] * 1e9).round().astype(int)
    assert in_ns.loc[(0, 0)].tolist() == [15, 15, 0]
    assert in_ns.loc[(0, 1)].tolist() == [15, 5, 10]
    assert in_ns.loc[(1, 1)].tolist() == [15, 15, 0]


def test_runs_are_split_each_by_its_own_steps(scene):
    scene.lane(job=0).add(scene.compute(), (0, 0, 10))
    scene.lane(job=1).add(scene.compute(), (50, 50, 70))
    table = breakdown(frame(scene.record()))
    assert list(table["run"]) == ["train", "train 1"]
    assert [round(s * 1e9) for s in table["duration"]] == [10, 20]


def test_an_axis_of_ones_own_has_its_column(scene):
    lane = scene.lane(groups={"x": "ring/mine/0"})
    op = scene.collective("tp")
    lane.add(type(op)(name="mine", kind="all_reduce", slot="x", nbytes=1, axis="ring"), (0, 0, 9))
    assert breakdown(frame(scene.record())).loc[0, "exposed_comm.ring"] == 9e-9


def test_an_empty_trace_has_an_empty_breakdown(pipeline):
    table = breakdown(frame(pipeline.record()).iloc[:0])
    assert len(table) == 0
    assert "compute" in table


times = st.tuples(st.integers(0, 40), st.integers(0, 15), st.integers(0, 20)).map(lambda t: (t[0], t[0] + t[1], sum(t)))
pools = st.sampled_from(["", "", "pinned", "lock"])
kinds = st.sampled_from(["compute", "optimizer", "copy", "drive", "host", "tp", "pp", "dp", "ep", "cp"])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.tuples(kinds, pools, times, times), min_size=1, max_size=6), min_size=1, max_size=4))
def test_partitions_each_step_exactly_and_frame_and_record_agree(new_scene, lanes):
    scene = new_scene()
    for rank, rows in enumerate(lanes):
        lane = scene.lane(rank=rank)
        for kind, pool, *when in rows:
            op = scene.collective(kind) if len(kind) == 2 else getattr(scene, kind)()
            lane.add(op, *when, waits_for=pool)
    record = scene.record()
    edges = step_edges(record.lanes)
    table = breakdown(frame(record)).set_index(["rank", "step"])
    for lane in record.lanes:
        waited = pools_of_lanes(record.lanes)
        spent = breakdown_ns(lane, edges, axes_of_lanes(record.lanes), waited)
        np.testing.assert_array_equal(spent.sum(axis=1), np.diff(edges))
        in_ns = np.rint(table.loc[lane.rank, list(class_names(pools=waited))].to_numpy(float) * 1e9).astype(np.int64)
        np.testing.assert_array_equal(in_ns, spent)
