"""The numbers of a run."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from clustersim.analysis import breakdown, definitions, summary
from clustersim.trace.frame import frame
from clustersim.workload.job import Job, Ledger

FIELDS = [
    "schema_version",
    "status",
    "fits",
    "step_time_s",
    "step_times_s",
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "samples_per_s",
    "samples_per_s_per_gpu",
    "model_flops_per_gpu_per_s",
    "mfu",
    "mfu_full_attention",
    "hfu",
    "bubble_fraction",
    "exposed_comm_fraction",
    "breakdown_s",
    "peak_memory_bytes",
    "out_of_memory",
    "plan",
    "fold",
    "num_ranks",
    "num_classes",
    "num_ops",
    "num_events",
    "wall_s",
    "warnings",
    "coverage",
]


@pytest.fixture
def steps(scene):
    """Two classes, steps of 100, 50, 80 and 60 ms; ranks 0 to 2 compute half of each and reduce, rank 3 idles."""
    ends = [0, 100, 150, 230, 290]
    ms = 10**6
    busy, idle = scene.lane(rank=0, multiplicity=3), scene.lane(rank=3)
    spans = list(pairwise(ends))
    middle = [(a + b) // 2 for a, b in spans]
    busy.add(scene.compute(), *((a * ms, a * ms, m * ms) for (a, _), m in zip(spans, middle, strict=True)))
    busy.add(
        scene.collective("dp"),
        *((m * ms, m * ms, b * ms) for (_, b), m in zip(spans, middle, strict=True)),
        start_bytes={"gpu/communication": 70},
        end_bytes={"gpu/communication": -70},
    )
    busy.program.resident["gpu/weights"] = 10
    idle.add(scene.optimizer(), *((a * ms, a * ms, a * ms + 1) for a, _ in spans))
    idle.program.resident["host_pinned/buffers"] = 3
    return scene


def test_has_every_field_and_all_are_defined(steps):
    answer = summary(steps.run())
    assert set(FIELDS) <= set(answer)
    assert set(answer) <= set(definitions())
    nested = {f"breakdown_s.{name}" for name in answer["breakdown_s"]}
    assert nested <= set(definitions())
    assert set(definitions()) - nested - set(answer) == {"jobs"}


def test_is_json_without_nan(steps):
    json.dumps(summary(steps.run()), allow_nan=False)


def test_step_time_is_the_median_after_the_first(steps):
    answer = summary(steps.run())
    assert answer["step_times_s"] == [0.1, 0.05, 0.08, 0.06]
    assert answer["step_time_s"] == 0.06


def test_of_an_even_number_the_two_in_the_middle(scene):
    scene.lane().add(scene.compute(), (0, 0, 9), (9, 9, 19), (19, 19, 39))
    answer = summary(scene.run())
    assert answer["step_time_s"] == 15e-9
    assert answer["breakdown_s"]["compute"] == 15e-9


def test_one_step_is_taken_as_it_is(scene):
    scene.lane().add(scene.compute(), (0, 0, 10**6))
    assert summary(scene.run())["step_time_s"] == 1e-3


@pytest.mark.parametrize(
    ("rounds", "steady"), [(1, (40 + 10 + 70) / 3), (2, (90 + 10 + 20) / 3), (3, (90 + 10 + 20 + 30 + 10 + 20) / 6)]
)
def test_step_time_where_steps_differ_is_the_mean_over_whole_periods_after_the_first(scene, rounds, steady):
    """A median would be one of the three."""
    ends = np.cumsum([0, 40, 10, 70, 90, 10, 20, 30, 10, 20]).tolist()
    lane = scene.lane()
    for step in range(3):
        of = [(ends[k], ends[k], ends[k + 1]) for k in range(step, 3 * rounds, 3)]
        lane.add(scene.compute(f"step {step}"), *of)
        lane.end_step()
    answer = summary(scene.run())
    assert answer["step_time_s"] * 1e9 == pytest.approx(steady)
    assert answer["breakdown_s"]["compute"] * 1e9 == pytest.approx(steady)
    executed = 2007  # of one step, scene.compute()
    assert answer["hfu"] == pytest.approx(executed / (steady * 1e-9) / 1e12)


def test_rates_follow_from_the_ledger(steps):
    answer = summary(steps.run())
    assert answer["tokens_per_s"] * answer["step_time_s"] == pytest.approx(4096, rel=1e-12)
    assert answer["tokens_per_s_per_gpu"] == pytest.approx(answer["tokens_per_s"] / 4, rel=1e-12)
    assert answer["model_flops_per_gpu_per_s"] == pytest.approx(1e9 / 0.06 / 4, rel=1e-12)
    assert answer["mfu"] == pytest.approx(1e9 / 0.06 / 4e12, rel=1e-12)
    assert answer["mfu_full_attention"] == pytest.approx(2 * answer["mfu"], rel=1e-12)
    assert answer["hfu"] == pytest.approx((3 * 2007 + 5) / 0.06 / 4e12, rel=1e-12)


def test_breakdown_is_the_weighted_mean_and_sums_to_the_step(steps):
    run = steps.run()
    answer = summary(run)
    parts = answer["breakdown_s"]
    assert list(parts["exposed_comm"]) == ["tp", "cp", "ep", "pp", "dp"]
    total = sum(parts["exposed_comm"].values()) + sum(v for k, v in parts.items() if k != "exposed_comm")
    assert total == pytest.approx(answer["step_time_s"], rel=1e-12)
    assert parts["compute"] == pytest.approx(0.75 * 0.03, rel=1e-12)
    assert answer["exposed_comm_fraction"] == pytest.approx(0.375, rel=1e-12)
    assert answer["bubble_fraction"] == pytest.approx(parts["bubble"] / 0.06, rel=1e-12)
    table = breakdown(frame(run.record))
    median = table[table["step"] == 3]
    for name in ("compute", "exposed_comm.dp", "bubble", "optimizer"):
        value = parts["exposed_comm"]["dp"] if "." in name else parts[name]
        assert value == pytest.approx(np.average(median[name], weights=median["multiplicity"]), rel=1e-12)


def test_memory_is_the_worst_ranks(steps):
    expected = {"gpu": 80, "host_pinned": 3, "host_pageable": 0, "nvme": 0, "file_system": 0}
    assert summary(steps.run())["peak_memory_bytes"] == expected


def test_what_does_not_fit_is_a_result(steps):
    answer = summary(steps.run(memory_bytes=79))
    assert (answer["status"], answer["fits"]) == ("out_of_memory", False)
    assert answer["out_of_memory"] == {
        "rank": 0,
        "stage": None,
        "op": "all_reduce dp",
        "tier": "gpu",
        "category": "communication",
        "needed_bytes": 80,
        "capacity_bytes": 79,
        "over_bytes": 1,
    }
    assert answer["step_time_s"] == 0.06


def test_counts(steps):
    answer = summary(steps.run())
    assert (answer["num_ranks"], answer["num_classes"], answer["num_ops"], answer["num_events"]) == (4, 2, 12, 7)
    assert (answer["fold"], answer["wall_s"], answer["status"], answer["fits"]) == ("exact", 0.25, "ok", True)
    assert answer["plan"] == {"tp": 2, "offload": {"ratio": 0.5}}


def test_a_run_that_ended_early_says_why_and_invents_nothing(scene):
    scene.lane().add(scene.compute(), (0, 0, -1))
    answer = summary(scene.run(status="deadlock", message="rank 0 waits for rank 1"))
    assert (answer["status"], answer["fits"], answer["message"]) == ("deadlock", None, "rank 0 waits for rank 1")
    assert answer["step_times_s"] == []
    for name in ("step_time_s", "tokens_per_s", "mfu", "hfu", "bubble_fraction", "exposed_comm_fraction"):
        assert answer[name] is None
    assert set(answer["breakdown_s"]["exposed_comm"].values()) == {None}
    assert answer["breakdown_s"]["compute"] is None


def test_a_step_of_no_length_has_no_rates(scene):
    scene.lane().add(scene.compute(), (0, 0, 0))
    answer = summary(scene.run())
    assert answer["step_time_s"] == 0.0
    assert answer["tokens_per_s"] is None


def test_a_dtype_that_the_gpu_lacks_leaves_mfu_open(scene):
    scene.ledger = Ledger(tokens=1, model_flops=1, model_flops_full_attention=1, dtype="fp8")
    scene.lane().add(scene.compute(), (0, 0, 10))
    answer = summary(scene.run())
    assert answer["mfu"] is None
    assert answer["hfu"] is None
    assert answer["warnings"] == ["mfu: test-gpu has no dense peak for fp8, so no MFU or HFU"]


def test_a_job_without_a_ledger_counts_no_tokens(scene):
    scene.ledger = Ledger()
    scene.lane().add(scene.compute(), (0, 0, 10))
    answer = summary(scene.run())
    assert answer["tokens_per_s"] is None
    assert answer["hfu"] > 0


def test_a_job_that_counts_samples_says_samples(scene):
    scene.ledger = Ledger(samples=12)
    for rank in range(2):
        scene.lane(rank=rank).add(scene.compute(), (0, 0, 10**9))
    answer = summary(scene.run())
    assert (answer["samples_per_s"], answer["samples_per_s_per_gpu"]) == (12, 6)
    assert (answer["tokens_per_s"], answer["tokens_per_s_per_gpu"]) == (None, None)
    assert "samples/s     12       6 per GPU" in str(answer)
    assert "tokens" not in str(answer)


def test_several_jobs_each_have_their_own(scene):
    scene.lane(job=0, multiplicity=2).add(scene.compute(), (0, 0, 10**6))
    scene.lane(job=1).add(scene.compute(), (0, 0, 2 * 10**6))
    answer = summary(scene.run())
    assert answer["step_time_s"] == 1e-3
    assert [job["step_time_s"] for job in answer["jobs"]] == [1e-3, 2e-3]
    assert [job["job"] for job in answer["jobs"]] == ["train", "train 1"]
    assert [job["num_ranks"] for job in answer["jobs"]] == [2, 1]


def test_values_of_any_type_become_plain(scene):
    scene.lane().add(scene.compute(), (0, 0, 10))
    run = scene.run()
    job = run.record.jobs[0]
    plan = {"a": np.int64(3), "b": (1, 2), "c": math.nan, "d": len, "e": np.arange(2)}
    odd = Job(name="odd", programs=job.programs, program_of=job.program_of, plan=plan)
    object.__setattr__(run.record, "jobs", (odd,))
    assert summary(run)["plan"] == {"a": 3, "b": [1, 2], "c": None, "d": "len", "e": [0, 1]}


def test_imports_neither_pandas_nor_matplotlib():
    code = "import sys, clustersim.analysis.summary; print([m for m in ('pandas', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_prints_as_text_and_travels_as_a_plain_dict(steps):
    answer = summary(steps.run())
    assert "step time" in str(answer)
    assert all(len(line) <= 80 for line in str(answer).splitlines())
    copy = pickle.loads(pickle.dumps(answer))
    assert type(copy) is dict
    assert copy == answer
