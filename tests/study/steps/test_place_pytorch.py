"""What rows of PyTorch's frameworks leave open and their profiles say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.step_job import place

TITAN = StepRow(
    line=2,
    source="torchtitan benchmarks",
    year=2024,
    hardware="H100-SXM5-80GB",
    interconnect="8x400 Gb/s",
    nodes=8,
    gpus=64,
    model="Llama 3",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    ffn=14336,
    gated_mlp=1,
    vocab=128256,
    seq_len=8192,
    tp=8,
    pp=1,
    cp=1,
    sharding="FSDP2",
    micro_batch=2,
    global_batch=128,
    recompute="selective",
    precision="bf16",
    metric="tokens_per_s_per_gpu",
    value=1.0,
    unit="tokens/s/GPU",
)


def plan(**changes: Any) -> Any:
    return place(replace(TITAN, **changes)).job.plan


def test_tokens_go_part_by_part_where_the_notes_say_so() -> None:
    assert plan(notes="vanilla TP; compile").tp_overlap == "none"
    assert plan(notes="async TP; compile").tp_overlap == plan(notes="compile+AsyncTP").tp_overlap == "ring"


def test_operators_are_done_again() -> None:
    assert plan().recompute_modules == ("norm", "residual", "second_products", "activation")
    assert (plan().repeat_heads, plan().batch_first, plan(tp=1).batch_first) == (True, True, False)


def test_llm_foundry() -> None:
    got = plan(
        source="MosaicML llm-foundry training benchmarks", year=2023, tp=1, sharding="FULL_SHARD", recompute="none"
    )
    assert (got.attention, got.loss, got.logged_losses, got.update_kernels) == ("triton", "fused", 2, "loop")
    assert (got.fsdp, got.flat_parameters, got.per_parameter) == (True, True, False)
    assert (got.reduce_dtype, got.gradient_dtype) == ("bf16", None)


def test_checkpoints_stop_early_from_pytorch_2_1_on() -> None:
    given = {"source": "MosaicML llm-foundry training benchmarks", "tp": 1, "sharding": "FULL_SHARD", "year": 2023}
    pure, default = (
        plan(**given, recompute="full", notes=f"{mode} mixed precision mode") for mode in ("PURE", "DEFAULT")
    )
    assert (pure.recompute_early_stop, default.recompute_early_stop) == (False, True)
    assert not plan(**given, recompute="none").recompute_early_stop


def test_internevo_runs_norms_again_in_any_case() -> None:
    given = {"source": "InternEvo training performance", "sharding": "ZeRO-1", "zero_stage": 1, "tp": 1}
    none, full = (plan(**given, recompute=text) for text in ("none", "full"))
    assert (none.recompute, none.recompute_modules) == ("selective", ("norm", "residual"))
    assert (full.recompute, none.overlap_dp, none.overlap_refresh) == ("full", True, False)
