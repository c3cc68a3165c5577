"""Settings into a job that trains a data-flow graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.library.job import JobSetup, load_job
from clustersim.study import run_length
from clustersim.study.messages import estimate_of
from clustersim.study.point import prepare, run_point
from clustersim.study.run_folder import write_run
from clustersim.workload.graph import Graph

PAIRS = (0, 3, 1, 2, 4, 7, 5, 6)
TABLE = """\
op,flops,out_bytes,after,parameters,device
stem,2e9,4000,,1000000,0
left,1e9,2000,stem,500000,0
right,1e9,2000,stem,500000,1
join,1e6,,left right,,0
"""


@pytest.fixture
def small(tmp_path: Path) -> JobSetup:
    """Four ops, placed by a column, on a DGX-1."""
    (tmp_path / "ops.csv").write_text(TABLE)
    return JobSetup.of("small", topology="dgx1-v100", graph=str(tmp_path / "ops.csv"), **{"graph.batch": 4})


def own_placement(graph: Graph, num_devices: int) -> Sequence[int]:
    """The last op alone on the last device."""
    return [0] * (len(graph.ops) - 1) + [num_devices - 1]


def faults_of(setup: JobSetup) -> dict[str, object]:
    with pytest.raises(BadInput) as caught:
        prepare(setup)
    return {fault.key: fault.nearest for fault in caught.value.faults}


def test_a_job_is_what_a_script_would_have_built() -> None:
    run = run_point(load_job("big-lstm-dgx1"))
    cluster = cs.load_topology("dgx1-v100", nodes=1)
    step = cs.graph_step(
        cs.load_graph("big-lstm"),
        batch=128,
        devices=2,
        replicas=4,
        placement="list",
        estimate=estimate_of(cluster, devices=PAIRS[:2]),
        device_of_rank=PAIRS,
    )
    ignored = {"wall_s", "job"}
    mine, its = cs.summary(run), cs.summary(cs.simulate(cluster, step))
    assert {k: v for k, v in mine.items() if k not in ignored} == {k: v for k, v in its.items() if k not in ignored}
    assert mine["tokens_per_s"] is None
    assert mine["samples_per_s"] * mine["step_time_s"] == pytest.approx(4 * 128, rel=1e-12)


def test_every_setting_reaches_the_job(small: JobSetup) -> None:
    settings: dict[str, Any] = {"graph.devices": 2, "graph.replicas": 3, "graph.gpu_order": PAIRS}
    job = prepare(small.with_values(settings)).job
    assert job.devices is not None
    assert job.devices.tolist() == list(PAIRS[:6])
    assert job.plan["placement"] == {"stem": 0, "left": 0, "right": 1, "join": 0}
    assert job.ledger.samples == 3 * 4
    assert "2 of 8 GPUs have no worker" in job.notes

    def num_ops(kind: str, **values: Any) -> int:
        arrays = prepare(small.with_values(values)).job.programs[0].arrays()
        return sum(arrays.ops[k].kind == kind for k in arrays.op)

    assert num_ops("all_reduce") == 1
    assert num_ops("all_reduce", **{"graph.bucket_bytes": 1}) == 3
    assert num_ops("optimizer") == 1
    assert num_ops("optimizer", **{"graph.update_bytes": 0}) == 0


def test_workers_fill_the_gpus(small: JobSetup) -> None:
    for devices in (1, 2, 8):
        settings = {"nodes": 2, "graph.devices": devices, "graph.placement": "list"}
        assert prepare(small.with_values(settings)).job.num_ranks == 16


def test_a_placement_of_ones_own(small: JobSetup) -> None:
    name = f"{__name__}:own_placement"
    job = prepare(small.with_values({"graph.devices": 2, "graph.placement": name})).job
    assert job.plan["placement"]["join"] == 1
    assert faults_of(small.with_values({"graph.placement": f"{__name__}:none"})) == {"graph.placement": None}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"graph.devices": 3}, {"graph.devices": 2}),
        ({"graph.devices": 9}, {"graph.devices": 8}),
        ({"graph.devices": 2, "graph.replicas": 5}, {"graph.replicas": 4}),
        ({"graph.placement": "lits"}, {"graph.placement": "list"}),
        ({"graph.gpu_order": (0, 1)}, {"graph.gpu_order": list(range(8))}),
        (
            {"steps": 100_000, "graph.devices": 3, "graph.gpu_order": (0, 0)},
            {"graph.devices": 2, "graph.gpu_order": list(range(8))},
        ),
        ({"graph": "gnmt", "graph.devices": 2}, {"graph.placement": "list"}),
        ({"graph": "gnmmt"}, {"graph": "gnmt"}),
        ({"model": "gpt2"}, {"model": None}),
        ({"plan.tp": 2, "seq_len": 128, "dtype": "fp16"}, {"plan.tp": None, "seq_len": None, "dtype": None}),
    ],
)
def test_what_does_not_go_together_is_named(
    small: JobSetup, settings: dict[str, Any], expected: dict[str, object]
) -> None:
    assert faults_of(small.with_values(settings)) == expected


def test_a_table_without_room_for_its_ops_is_told_op_by_op(small: JobSetup, tmp_path: Path) -> None:
    (tmp_path / "ops.csv").write_text(TABLE.replace("500000,1", "500000,5").replace(",,0\n", ",,\n"))
    assert faults_of(small.with_values({"graph.devices": 2})) == {"ops.right.device": 1, "ops.join.device": 0}


def test_what_must_be_given(tiny: JobSetup) -> None:
    assert faults_of(JobSetup.of(graph="gnmt")) == {"topology": None, "graph.batch": 64}
    assert faults_of(JobSetup.of(topology="dgx1-v100", **{"graph.batch": 1})) == {"graph": None}
    assert faults_of(tiny.with_values({"graph.devices": 2})) == {"graph.devices": None}


def test_a_run_too_long_is_refused_before_it_is_built(small: JobSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_length, "MOST_OPS", 100)
    assert faults_of(small.with_values({"steps": 13})) == {"steps": 12}
    prepare(small.with_values({"steps": 12}))


@pytest.mark.parametrize("as_card", [True, False])
def test_a_folder_repeats_the_run(small: JobSetup, tmp_path: Path, as_card: bool) -> None:
    setup = small.with_values({"graph.devices": 2, "steps": 2, "graph.bucket_bytes": 10**6})
    if as_card:
        card = tmp_path / "net.toml"
        card.write_text('table = "ops.csv"\n[sources]\ntable = "assumed"\n')
        setup = setup.with_values({"graph": str(card)})
    run = run_point(setup)
    write_run(run, setup, tmp_path / "run")
    (tmp_path / "ops.csv").write_text("op,flops\nother,1\n")
    again = run_point(load_job(tmp_path / "run"))
    assert again.inputs == run.inputs
    left_out = {"wall_s"}
    first, second = cs.summary(run), cs.summary(again)
    assert {k: v for k, v in first.items() if k not in left_out} == {
        k: v for k, v in second.items() if k not in left_out
    }
    names = {path.name for path in (tmp_path / "run/cards/workloads/graphs").iterdir()}
    assert names == ({"net.toml", "ops.csv"} if as_card else {"ops.csv"})
    assert not any(key.startswith("plan.") or key == "dtype" for key in run.inputs["settings"])


def test_the_hash_is_of_the_table(small: JobSetup, tmp_path: Path) -> None:
    before = run_point(small).inputs["sha256"]
    (tmp_path / "ops.csv").write_text(TABLE.replace("1e6", "2e6"))
    assert run_point(small).inputs["sha256"] != before
