"""Two runs side by side."""

from __future__ import annotations

import json

import pytest

from clustersim.analysis import breakdown, compare, compare_breakdowns, summary
from clustersim.trace.frame import frame


def one(new_scene, duration, multiplicity=1):
    scene = new_scene()
    lane = scene.lane(multiplicity=multiplicity)
    lane.add(scene.compute(), (0, 0, duration))
    lane.program.resident["gpu/weights"] = 8
    return scene


def test_metrics_have_delta_and_ratio(new_scene):
    a, b = summary(one(new_scene, 100).run()), summary(one(new_scene, 150).run())
    answer = compare(a, b)
    json.dumps(answer, allow_nan=False)
    step = answer["metrics"]["step_time_s"]
    assert step == {"baseline": 1e-7, "candidate": 1.5e-7, "delta": 0.5e-7, "ratio": 1.5}
    assert answer["metrics"]["peak_memory_bytes.gpu"]["delta"] == 0
    assert answer["breakdown_s"]["compute"]["ratio"] == pytest.approx(1.5)
    assert answer["breakdown_s"]["exposed_comm.tp"] == {"baseline": 0.0, "candidate": 0.0, "delta": 0.0, "ratio": None}


def test_deltas_of_the_breakdown_explain_the_delta_of_the_step(new_scene):
    answer = compare(summary(one(new_scene, 100).run()), summary(one(new_scene, 150).run()))
    explained = sum(pair["delta"] for pair in answer["breakdown_s"].values())
    assert explained == pytest.approx(answer["metrics"]["step_time_s"]["delta"], rel=1e-9)


def test_a_run_without_a_step_compares_as_unknown(new_scene):
    broken = one(new_scene, -1)
    answer = compare(summary(one(new_scene, 100).run()), summary(broken.run(status="deadlock")))
    assert answer["metrics"]["step_time_s"] == {"baseline": 1e-7, "candidate": None, "delta": None, "ratio": None}


def test_changed_inputs_are_the_plans_or_those_given(new_scene):
    a = summary(one(new_scene, 100).run())
    b = a | {"plan": {"tp": 4, "offload": {"ratio": 0.5}, "zero": 1}}
    assert compare(a, a)["changed_inputs"] == {}
    assert compare(a, b)["changed_inputs"] == {
        "plan.tp": {"baseline": 2, "candidate": 4},
        "plan.zero": {"baseline": None, "candidate": 1},
    }
    given = compare(a, a, inputs=({"topology": {"nodes": 1}}, {"topology": {"nodes": 2}}))
    assert given["changed_inputs"] == {"topology.nodes": {"baseline": 1, "candidate": 2}}


def test_breakdowns_compare_by_their_means(new_scene):
    a, b = one(new_scene, 100, multiplicity=3), one(new_scene, 150)
    idle = a.lane(rank=3)
    idle.add(a.host(), (0, 0, 20))
    table = compare_breakdowns(breakdown(frame(a.record())), breakdown(frame(b.record())))
    assert table.loc["compute"].tolist() == pytest.approx([75e-9, 150e-9, 75e-9, 2.0])
    assert table.loc["host", "candidate"] == 0.0
    assert table.loc["duration", "delta"] == pytest.approx(50e-9)
