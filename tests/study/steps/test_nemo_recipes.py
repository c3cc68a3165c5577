"""Benchmarks of NeMo in 2025: what was a CUDA graph, and how fp8 was scaled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.nemo_recipes import NEMO_RECIPES
from clustersim.study.steps.step_job import place

ROW = StepRow(
    line=2,
    source="NeMo Framework 25.02 performance summary",
    year=2025,
    hardware="DGX-B200",
    gpus=128,
    model="Nemotron-340B",
    layers=96,
    hidden=18432,
    heads=96,
    kv_heads=8,
    ffn=73728,
    vocab=256000,
    seq_len=4096,
    tp=8,
    pp=4,
    vpp=12,
    micro_batch=1,
    global_batch=32,
    precision="FP8",
    metric="tokens_per_s_per_gpu",
    value=602.0,
    unit="tokens/s/GPU",
)


@pytest.mark.parametrize(
    ("hardware", "model", "launch"),
    [
        ("DGX-B200", "Nemotron-340B", "cuda_graphs"),
        ("DGX-B200", "GPT3-175B", "modules"),
        ("DGX-GB200", "GPT3-175B", "cuda_graphs"),
        ("DGX-GB200", "LLAMA3-70B", "modules"),
        ("DGX-H100", "Nemotron-340B", "modules"),
    ],
)
def test_graphs_by_gpu_and_model(hardware: str, model: str, launch: str) -> None:
    assert place(replace(ROW, hardware=hardware, model=model)).job.plan.launch == launch


@pytest.mark.parametrize(("hardware", "launch"), [("DGX-B200", "cuda_graphs"), ("DGX-GB200", "modules")])
def test_graphs_in_bf16(hardware: str, launch: str) -> None:
    assert place(replace(ROW, hardware=hardware, precision="BF16")).job.plan.launch == launch


def test_no_other_framework_takes_them() -> None:
    for source in ("NVIDIA Megatron Bridge performance summary 25.09", "NeMo 24.07"):
        assert place(replace(ROW, source=source, year=2024)).job.plan.launch == "modules"


@pytest.mark.parametrize(
    ("source", "precision", "dtype"),
    [
        ("NeMo 25.02", "FP8", "fp8"),
        ("NeMo 25.04", "FP8", "fp8_current"),
        ("NeMo 25.07", "MXFP8", "mxfp8"),
        ("NeMo 25.04", "BF16", "bf16"),
    ],
)
def test_scales_of_fp8(source: str, precision: str, dtype: str) -> None:
    assert place(replace(ROW, source=source, precision=precision)).job.dtype == dtype


@pytest.mark.parametrize(("precision", "gradients"), [("FP8", "bf16"), ("BF16", "fp32"), ("MXFP8", "bf16")])
def test_the_profile_of_2025(precision: str, gradients: str) -> None:
    """helpers.py of NeMo's performance scripts leaves the sum of bf16 in fp32."""
    step = place(replace(ROW, precision=precision))
    assert (step.profile.name, step.job.plan.gradient_dtype) == ("nemo-2025", gradients)
    assert place(replace(ROW, source="NeMo 24.07", year=2024)).profile.name == "nemo-2024"


def test_a_model_of_that_name_is_no_framework() -> None:
    other = replace(ROW, source="Megatron Core, a lab", hardware="H100", model="Nemotron-340B", precision="BF16")
    assert place(other).profile.name != "nemo-2025"
    assert not any(recipe.fits(other) for recipe in NEMO_RECIPES)
