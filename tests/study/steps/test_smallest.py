"""Where no degrees are published a replica takes the fewest GPUs that hold it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.refusal import REASONS, RefusedError
from clustersim.study.steps.smallest import placed
from clustersim.study.steps.step_job import place
from clustersim.study.steps.timing import step_time

ROW = StepRow(
    line=2,
    source="lab",
    year=2024,
    hardware="H100 SXM",
    interconnect="8x400 gb/s",
    nodes=1,
    gpus=8,
    model="GPT",
    layers=4,
    hidden=8192,
    heads=64,
    ffn=32768,
    vocab=51200,
    seq_len=4096,
    global_batch=16,
    precision="bf16",
    metric="iteration_time",
    value=1.0,
    unit="s",
)


def test_a_small_model_is_not_split() -> None:
    small = placed(replace(ROW, hidden=1024, heads=16, ffn=4096))
    assert (small.job.plan.tp, small.job.plan.pp, small.job.plan.recompute) == (1, 1, "none")
    assert not small.published
    assert any(text.startswith("layout: tp 1, pp 1") for text in small.assumptions)


def test_what_does_not_fit_is_split_no_further_than_it_must() -> None:
    found = placed(replace(ROW, layers=8, seq_len=32768))
    plan = found.job.plan
    assert plan.tp * plan.pp > 1
    assert step_time(found.job).fits
    smaller = [(tp, pp) for tp in (1, 2, 4, 8) for pp in (1, 2, 4) if tp * pp < plan.tp * plan.pp]
    for tp, pp in smaller:
        assert not step_time(place(replace(ROW, layers=8, seq_len=32768, tp=tp, pp=pp)).job).fits


def test_a_published_layout_is_left_alone() -> None:
    row = replace(ROW, tp=4, pp=1, micro_batch=1)
    assert placed(row) == place(row)
    assert place(row).published


def test_a_model_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(RefusedError) as refused:
        placed(replace(ROW, gpus=1024, nodes=128, global_batch=3, layers=1))
    assert refused.value.reason in (REASONS["layout"], REASONS["numbers"])


def test_why_nothing_stands_for_a_row_is_told() -> None:
    with pytest.raises(RefusedError, match="no tp x pp has room in their memory"):
        placed(replace(ROW, gpus=2, nodes=1, layers=96, hidden=16384, heads=128, ffn=65536))
    with pytest.raises(RefusedError) as refused:
        placed(replace(ROW, ep=3))
    assert refused.value.reason == REASONS["plan"]
    assert refused.value.detail.startswith("plan.")
