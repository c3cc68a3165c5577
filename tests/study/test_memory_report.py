"""What a job holds, and the largest micro-batch that fits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.analysis.summary import summary
from clustersim.library.job import JobSetup
from clustersim.study.memory_report import MemoryReport, memory_report
from clustersim.study.memory_text import memory_text
from clustersim.study.point import run_point


@pytest.fixture(scope="module")
def setup() -> JobSetup:
    """GPT-2 Large, 32 sequences a replica; with unfused attention some of its micro-batches fit a V100."""
    values = {"plan.pp": 2, "global_batch": 128, "seq_len": 1024}
    return JobSetup.of("small", model="gpt2-large", topology="dgx-h100", **values)


@pytest.fixture(scope="module")
def report(setup: JobSetup) -> MemoryReport:
    return memory_report(setup.with_values({"topology": "dgx1-v100", "dtype": "fp16", "plan.attention": "unfused"}))


def test_it_agrees_with_the_run(setup: JobSetup) -> None:
    run = run_point(setup)
    said, answer = summary(run), memory_report(setup, search=False).answer()
    assert answer["peak_bytes"] == said["peak_memory_bytes"]["gpu"] == max(s["peak_bytes"] for s in answer["stages"])
    assert answer["by_tier"] == said["peak_memory_bytes"]
    assert (answer["fits"], answer["largest_micro_batch"]) == (True, None)
    assert [stage["stage"] for stage in answer["stages"]] == [0, 1]
    for stage in answer["stages"]:
        assert sum(stage["by_category"].values()) == stage["peak_bytes"] > 0


def test_what_is_held_throughout_is_that_of_the_fullest_rank(report: MemoryReport) -> None:
    lane = report.result.record.lanes[int(report.result.record.lane_of[0][report.worst.rank])]
    assert report.answer()["resident"] == dict(lane.arrays.resident)
    weights = f"weights {report.resident['gpu/weights'] / 2**30:.2f}"
    assert f"held throughout [GiB]: {weights}, gradients" in memory_text(report)


def test_the_largest_micro_batch_is_maximal(setup: JobSetup, report: MemoryReport) -> None:
    largest = report.largest_micro_batch
    assert largest is not None
    assert 1 <= largest < 32
    small = setup.with_values({"topology": "dgx1-v100", "dtype": "fp16", "plan.attention": "unfused"})
    fitting = {b: summary(run_point(small.with_values({"micro_batch": b})))["fits"] for b in (1, 2, 4, 8, 16, 32)}
    assert largest == max(b for b, fits in fitting.items() if fits)
    assert {trial.micro_batch: trial.fits for trial in report.trials or ()} == {
        b: fits for b, fits in fitting.items() if b >= largest
    }


def test_micro_batches_that_the_rules_refuse_are_told(setup: JobSetup) -> None:
    trials = memory_report(setup.with_values({"plan.schedule": "dualpipe", "plan.tp": 1, "global_batch": 16})).trials
    refused = [trial for trial in trials or () if trial.fits is None]
    assert refused
    assert all("micro-batches a replica" in trial.reason for trial in refused)


def test_none_is_tried_where_what_is_resident_leaves_no_room(setup: JobSetup) -> None:
    values = {"model": "llama-2-7b", "plan.tp": 1, "plan.pp": 1, "seq_len": 128}
    report = memory_report(setup.with_values(values))
    assert (report.fits, report.largest_micro_batch, report.trials) == (False, 0, [])
    assert "none; what is held throughout leaves no room for any" in " ".join(memory_text(report).split())


def test_the_text_names_every_stage_the_owner_and_what_was_tried(report: MemoryReport) -> None:
    text = memory_text(report)
    assert all(len(line) <= 80 for line in text.splitlines())
    flat = " ".join(text.split())
    assert f"in '{report.worst.peak_op}'" in flat
    assert f"largest micro-batch that fits: {report.largest_micro_batch} (tried 32: " in flat
    rows = [line.split() for line in text.splitlines() if line.strip()[:1] in ("0", "1")]
    for row in rows:
        assert sum(float(cell) for cell in row[1:-1]) == pytest.approx(float(row[-1]), abs=0.03)
    assert [int(row[0]) for row in rows] == [0, 1]


def test_what_no_program_accounts_for_is_told_where_it_decides(setup: JobSetup) -> None:
    loose = memory_report(setup, search=False)
    assert loose.warnings == loose.result.warnings
    device = loose.answer()["device"]
    parts = ("reserved_bytes", "context_bytes", "communicator_bytes")
    assert device["device_bytes"] == sum(device[name] for name in parts) > loose.worst.peak_bytes
    room = loose.worst.room_bytes - 64 * 2**20
    tight = replace(loose, stages=[replace(loose.worst, capacity_bytes=loose.worst.capacity_bytes - room)])
    assert any("by" in warning and "MiB not" in warning for warning in tight.answer()["warnings"])


def test_a_run_that_does_not_end_says_nothing_of_the_largest(setup: JobSetup) -> None:
    report = memory_report(setup.with_values({"limits.num_events": 20}))
    assert (report.fits, report.largest_micro_batch) == (None, None)
    assert "largest micro-batch that fits: not known" in " ".join(memory_text(report).split())


def test_it_says_how_far_it_is(setup: JobSetup) -> None:
    told: list[float] = []
    memory_report(setup.with_values({"global_batch": 8, "seq_len": 64}), progress=told.append)
    assert told == [0.0]  # the largest fits
