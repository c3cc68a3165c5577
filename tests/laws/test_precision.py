"""A whole step under each recipe: what narrow products gain, and who refuses to multiply them."""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.workload.precision import RECIPES

WIDE = cs.Model(
    name="wide",
    num_layers=4,
    hidden=8192,
    num_heads=64,
    num_kv_heads=8,
    head_dim=128,
    ffn_hidden=28672,
    gated_mlp=True,
    vocab=32000,
    max_seq_len=4096,
    norm="rmsnorm",
    positions="rope",
    tied_embeddings=False,
)


def step_seconds(cluster: str, dtype: Any) -> float:
    job = cs.training_step(
        WIDE,
        cs.ParallelPlan(tp=2, pp=2, zero=1),
        global_batch=8,
        micro_batch=1,
        seq_len=4096,
        dtype=dtype,
        num_devices=8,
    )
    return float(cs.simulate(cs.load_topology(cluster, nodes=1), job).trace["end_ns"].max()) / 1e9


@pytest.mark.parametrize(
    ("cluster", "recipe"), [("dgx-h100", "fp8"), ("dgx-h100", "fp8_blockwise"), ("dgx-b200", "mxfp8")]
)
def test_narrow_products_gain_less_than_the_ratio_of_peaks(cluster: str, recipe: str) -> None:
    peaks = cs.load_topology(cluster, nodes=1).gpus[0].tensor_flop_per_s
    ratio = peaks[RECIPES[recipe].activation_operand.dtype] / peaks["bf16"]
    assert 1 < step_seconds(cluster, "bf16") / step_seconds(cluster, recipe) < ratio


def test_one_more_read_of_each_tensor_costs_time() -> None:
    assert step_seconds("dgx-h100", "fp8") < step_seconds("dgx-h100", "fp8_current")


def test_tf32_is_between_fp32_and_bf16() -> None:
    bf16, tf32, fp32 = (step_seconds("dgx-h100", dtype) for dtype in ("bf16", "tf32", "fp32"))
    assert bf16 < tf32 < fp32


@pytest.mark.parametrize(("cluster", "recipe"), [("dgx-a100", "fp8"), ("dgx-h100", "mxfp8"), ("dgx-h100", "nvfp4")])
def test_a_device_without_the_units_is_refused_before_the_run(cluster: str, recipe: str) -> None:
    with pytest.raises(BadInput, match=rf"'{recipe}' cannot run on .* matrix units, only .*bf16"):
        step_seconds(cluster, recipe)
