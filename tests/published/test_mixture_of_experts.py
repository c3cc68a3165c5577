"""Mixtures of experts against published measurements: layers by themselves, and whole steps.

Nothing here was fitted to them. Steps come out too fast by a sixth to a fifth: all experts are equally popular, no host
launches kernels late, and no power limit lowers a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import clustersim as cs
from clustersim.study.point import run_point
from clustersim.workload.exchange import Dispatch
from clustersim.workload.shape.experts import Experts

MIXTRAL = cs.load_model("mixtral-8x7b")
DEEPSEEK = Experts(num_experts=32, top_k=8, ffn_hidden=2048, num_shared=1, shared_ffn_hidden=2048)


@cache
def layer_ms(model: str, dispatch: Dispatch) -> tuple[float, float]:
    """Forward and backward pass of one layer's experts over 4,096 tokens a GPU on 8 H100 [ms]."""
    shape = MIXTRAL if model == "mixtral" else replace(MIXTRAL, hidden=7168, experts=DEEPSEEK)
    plan = cs.ParallelPlan(ep=8, dispatch=dispatch)
    batch: dict[str, Any] = {"global_batch": 8, "micro_batch": 1, "seq_len": 4096}
    step = cs.training_step(replace(shape, num_layers=1), plan, num_devices=8, **batch)
    table = cs.simulate(cs.load_topology("dgx-h100"), step).trace_of([0])
    mine = table[table["name"].str.contains(r"experts|router|tokens|token counts|output gradients|input gradients")]
    passes = [mine[mine["phase"] == phase] for phase in ("forward", "backward")]
    passes = [one[~one["name"].str.contains("reduce|gather weights")] for one in passes]
    forward, backward = ((one["end_ns"].max() - one["start_ns"].min()) / 1e6 for one in passes)
    return float(forward), float(backward)


@pytest.mark.parametrize(
    ("model", "dispatch", "which", "measured"),
    [
        ("deepseek", "all_to_all", 0, 7.119),
        pytest.param(
            *("deepseek", "all_to_all", 1, 10.48),
            marks=pytest.mark.xfail(
                strict=True,
                reason="37 % above: 6.5 TFLOP in 10.5 ms are 620 TFLOP/s over the whole pass with its exchanges, so "
                "that products of one layer, timed by itself, did not run at the clock of a step, as they do here",
            ),
        ),
        ("deepseek", "deepep", 0, 5.682),
        ("mixtral", "all_to_all", 0, 4.327),
    ],
)
def test_megatron_lm_layers_on_8_h100(model: str, dispatch: Dispatch, which: int, measured: float) -> None:
    """Megatron-LM, tests/functional_tests/test_cases/common/moe_perf/baseline.json: TP1, EP8, bf16, balanced.

    Three tenths: products run at the clock of a step here, and those of a layer that is timed by itself did not.
    """
    assert layer_ms(model, dispatch)[which] == pytest.approx(measured, rel=0.3)


def test_deepseek_v3_on_2048_h800(readme_row: Callable[[str], list[Any]]) -> None:
    """Technical report, arXiv 2412.19437, section 1: 180,000 H800 hours for 10^12 tokens, so 1,543 tokens/s a GPU."""
    run = run_point(cs.load_job("deepseek-v3-2048"))
    rate = cs.summary(run)["tokens_per_s_per_gpu"]
    assert 1 < rate / 1543.2 < 1.25
    assert [rate] == readme_row("DeepSeek-V3 on 2,048 H800, DualPipe, fp8")


def test_mixtral_8x7b_on_64_h100(readme_row: Callable[[str], list[Any]]) -> None:
    """Megatron-LM, megatron/core/transformer/moe/README.md of v0.9: 468 TFLOP/s a GPU in bf16."""
    run = run_point(cs.load_job("mixtral-8x7b-64"))
    rate = cs.summary(run)["model_flops_per_gpu_per_s"] / 1e12
    assert 1 < rate / 468 < 1.25
    assert [rate] == readme_row("Mixtral 8x7B on 64 H100")
