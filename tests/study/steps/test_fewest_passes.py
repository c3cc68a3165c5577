"""Sharded weights are gathered no more often than memory asks for, where a row does not tell."""

from __future__ import annotations

from dataclasses import replace

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.fits import fits
from clustersim.study.steps.smallest import placed
from clustersim.study.steps.step_job import place

ROW = StepRow(
    line=2,
    source="lab",
    year=2023,
    hardware="A100-SXM4-80GB",
    interconnect="8x200 gb/s",
    nodes=1,
    gpus=8,
    model="GPT",
    layers=4,
    hidden=4096,
    heads=32,
    ffn=16384,
    vocab=51200,
    seq_len=2048,
    global_batch=128,
    tp=1,
    pp=1,
    sharding="FSDP",
    recompute="full",
    precision="bf16",
    metric="iteration_time",
    value=1.0,
    unit="s",
)


def test_one_pass_where_it_fits() -> None:
    found = placed(ROW)
    assert (found.job.micro_batch, found.job.num_micro_batches) == (16, 1)
    assert [text for text in found.assumptions if text.startswith("batch")] == [
        "batch: micro-batch 16, the largest that fits: each pass gathers the weights"
    ]
    assert not found.published
    assert found.row == ROW


def test_the_largest_that_fits_where_one_pass_does_not() -> None:
    row = replace(ROW, global_batch=4096)
    found = placed(row)
    assert found.job.num_micro_batches > 1
    assert fits(found)
    assert not fits(place(replace(row, micro_batch=2 * found.job.micro_batch)))


def test_also_of_a_row_without_degrees() -> None:
    found = placed(replace(ROW, tp=None, pp=None))
    assert (found.job.plan.tp, found.job.plan.pp, found.job.num_micro_batches) == (1, 1, 1)


def test_what_is_published_or_gathers_nothing_stays() -> None:
    for row in (
        replace(ROW, micro_batch=2),
        replace(ROW, sharding="DDP"),
        replace(ROW, metric="peak memory", unit="GB", value=40.0),
    ):
        assert placed(row) == place(row)
