"""Rows of sources whose jobs are cards of the library."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.job_card import card_job
from clustersim.study.steps.refusal import REASONS, RefusedError
from clustersim.study.steps.smallest import placed
from clustersim.study.steps.step_job import place
from clustersim.workload.offload import DeepOptimizerStates, MlpOffload, Zero3Offload, ZeroInfinity

MLP = StepRow(
    line=2,
    id="mlpoffload-70B-mlp",
    source="MLP-Offload artifact log (DataStates)",
    year=2025,
    hardware="4x H100-80GB node (GPU model from memory of the paper)",
    nodes=1,
    gpus=4,
    model="70B",
    layers=80,
    hidden=8192,
    heads=64,
    kv_heads=64,
    seq_len=2048,
    tp=1,
    pp=1,
    dp=4,
    zero_stage=3,
    micro_batch=1,
    global_batch=4,
    recompute="full (activation checkpointing)",
    precision="bf16/fp16 mixed",
    offload="optimizer states NVMe + parallel file system (MLP-Offload)",
    metric="iteration_time",
    value=151.1,
    unit="s",
)
DOS = replace(
    MLP,
    id="dos-7B",
    source="Deep Optimizer States artifact sample log",
    gpus=1,
    model="7B",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=32,
    dp=1,
    global_batch=1,
    offload="optimizer CPU (sub-group 10M)",
)


def policy(row: StepRow) -> Any:
    return place(row).job.plan.offload


def test_policies_of_two_artefacts() -> None:
    default = replace(MLP, offload="optimizer states NVMe (DeepSpeed ZeRO-3 default)")
    kinds = [type(policy(row)) for row in (MLP, default, DOS, replace(DOS, notes="vanilla ZeRO-3 CPU offload"))]
    assert kinds == [MlpOffload, ZeroInfinity, DeepOptimizerStates, Zero3Offload]
    assert policy(MLP).lock
    assert not policy(replace(MLP, id="mlpoffload-70B-mlp-nosp")).lock


def test_batch_and_subgroup_are_the_rows_own() -> None:
    job = place(replace(MLP, micro_batch=2, global_batch=16, seq_len=1024)).job
    assert (job.micro_batch, job.global_batch, job.seq_len, job.machine.card) == (2, 16, 1024, "jlse-h100")
    assert policy(DOS).subgroup_size == 10_000_000
    assert policy(replace(DOS, offload="optimizer CPU (sub-group 100M)")).subgroup_size == 100_000_000


def test_models_without_a_job_of_their_own_take_that_of_another() -> None:
    step = place(replace(MLP, model="52B", layers=None, hidden=None, heads=None))
    assert (step.job.model.name, type(step.job.plan.offload)) == ("mlp-offload-52b", MlpOffload)


def test_where_scripts_and_row_differ_it_is_told() -> None:
    step = place(MLP)
    assert step.job.model.num_kv_heads == 4
    assert "model: mlp-offload-70b has kv_heads 4; published as 64" in step.assumptions


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"model": "71B"}, "model"), ({"layers": 81}, "numbers"), ({"gpus": 8}, "numbers"), ({"global_batch": 6}, "plan")],
)
def test_refusals(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(RefusedError) as refused:
        card_job(replace(MLP, **changes))
    assert refused.value.reason == REASONS[word]


def test_degrees_that_the_row_lacks_are_the_cards() -> None:
    assert placed(replace(MLP, tp=None, pp=None, dp=None)).job == place(MLP).job


def test_rows_of_other_sources_have_no_card() -> None:
    assert card_job(replace(MLP, source="somebody's log")) is None


def test_the_row_of_a_report_whose_job_stands_as_a_card() -> None:
    row = StepRow(
        line=2,
        source="DeepSeek-V3 technical report (arXiv 2412.19437)",
        hardware="H800",
        gpus=2048,
        model="DeepSeek-V3",
        notes="DualPipe; 180K GPU hours a trillion tokens",
        metric="tokens_per_s_per_gpu",
        value=1543.0,
        unit="tokens/s/GPU",
    )
    told = card_job(row)
    assert told is not None
    assert (told.name, told.case.plan.schedule, told.case.plan.ep) == ("deepseek-v3-2048", "dualpipe", 64)
    assert (told.num_ranks, told.case.dtype) == (2048, "fp8_blockwise")
