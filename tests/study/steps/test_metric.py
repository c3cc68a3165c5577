"""One simulated step in each published metric."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.metric import in_metric, metric_faults
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.step_job import MeasuredStep, place
from clustersim.study.steps.timing import StepTime
from clustersim.workload.job import Ledger

ROW = StepRow(
    line=2,
    source="Megatron-LM SC21 Table 1",
    hardware="A100-SXM4-80GB",
    gpus=8,
    model="GPT",
    layers=4,
    hidden=1024,
    heads=16,
    ffn=4096,
    vocab=51200,
    seq_len=2048,
    tp=8,
    pp=1,
    micro_batch=4,
    global_batch=8,
    recompute="full",
    precision="fp16",
    metric="iteration_time",
    value=1.0,
    unit="s",
)
STEP = StepTime(
    seconds=2.0,
    optimizer_s=0.5,
    peak_bytes=3 * 2**30,
    fits=True,
    ledger=Ledger(tokens=8 * 2048, samples=8, model_flops=3 * 10**13, model_flops_full_attention=6 * 10**13),
    coverage={},
    simulated=2,
)
B, S, L, H, V = 8, 2048, 4, 1024, 51200


def step(**changes: Any) -> MeasuredStep:
    return place(replace(ROW, **changes))


@pytest.mark.parametrize(
    ("metric", "unit", "convention", "value"),
    [
        ("iteration_time", "s", "", 2.0),
        ("iteration_time", "ms", "", 2000.0),
        ("iteration_time", "min", "", 2 / 60),
        ("max_memory_allocated", "GiB", "", 3.0),
        ("tokens_per_s_per_gpu", "tokens/s/GPU", "", 8 * 2048 / 2 / 8),
        ("tokens_per_s", "tokens/s", "", 8 * 2048 / 2),
        ("samples_per_s", "sequences/s", "", 4.0),
        ("samples_per_s_per_gpu", "samples/s/GPU", "", 0.5),
        ("tflops_per_gpu", "TFLOP/s/GPU (model FLOPs)", "", 30 / 16),
        ("tflops_per_gpu", "TFLOP/s/GPU (hardware FLOPs incl. recompute)", "", 60 * 4 / 3 / 16),
        ("tflops_per_gpu", "TFLOP/s/GPU", "", 60 * 4 / 3 / 16),
        ("mfu", "percent of 312 TFLOP/s", "model FLOPs", 100 * 30 / 16 / 312),
        ("mfu", "percent", "", 100 * 30 / 16 / 312),
        ("mfu", "fraction", "", 30 / 16 / 312),
        ("hfu", "percent of 312 TFLOP/s", "", 100 * 60 * 4 / 3 / 16 / 312),
        (
            "tflops_per_gpu",
            "TFLOP/s/GPU",
            "96Bslh^2(1+s/6h+V/16lh)",
            96 * B * S * L * H**2 * (1 + S / 6 / H + V / 16 / L / H) / 16e12,
        ),
        (
            "tflops_per_gpu",
            "TFLOP/s/GPU",
            "72Bslh^2(1+s/6h+V/12lh), model FLOPs",
            72 * B * S * L * H**2 * (1 + S / 6 / H + V / 12 / L / H) / 16e12,
        ),
    ],
)
def test_metrics(metric: str, unit: str, convention: str, value: float) -> None:
    measured = step(metric=metric, unit=unit, flops_convention=convention)
    assert in_metric(measured, STEP) == pytest.approx(value)


def test_a_source_that_counts_the_full_square_is_predicted_so() -> None:
    """NeMo's own count has attention over the full square; Megatron-Bridge's, in the same words, the causal half."""
    unit = {"metric": "tflops_per_gpu", "unit": "TFLOP/s/GPU (model FLOPs, as printed by NeMo)"}
    assert in_metric(step(source="NeMo long sequence performance (FP8)", **unit), STEP) == pytest.approx(60 / 16)
    assert in_metric(step(source="Megatron Bridge performance summary", **unit), STEP) == pytest.approx(30 / 16)


def test_without_the_optimizer_on_one_gpu() -> None:
    assert in_metric(step(gpus=1, tp=1, metric="forward_backward_time", unit="ms"), STEP) == 1500.0
    assert in_metric(step(metric="forward_backward_time", unit="ms"), STEP) == 2000.0


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("step_time_ratio", "x"),
        ("iteration_time", "days"),
        ("mfu", "x"),
        ("peak memory", "percent"),
        ("tokens_per_s_per_gpu", "tokens/s/GPU (whole run average)"),
        ("tokens_per_s_per_gpu", "ktokens/s/GPU"),
        ("samples_per_s", "samples/min"),
        ("tflops_per_gpu", "PFLOP/s"),
    ],
)
def test_what_no_step_tells_is_refused(metric: str, unit: str) -> None:
    with pytest.raises(RefusedError):
        metric_faults(replace(ROW, metric=metric, unit=unit))


def test_a_share_of_an_8_bit_peak_that_is_not_told_is_refused() -> None:
    with pytest.raises(RefusedError, match="of which peak is not told"):
        metric_faults(replace(ROW, metric="mfu", unit="percent", precision="fp8"))
    metric_faults(replace(ROW, metric="mfu", unit="percent of 1979 TFLOP/s", precision="fp8"))


MEMORY = replace(
    ROW, model="GPT 22B", source="Reducing Activation Recomputation", unit="GiB", gpus=None, precision="bf16"
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metric": "activations", "recompute": "none"}, 59.25),
        ({"metric": "activations", "recompute": "selective + sequence parallel"}, 9.5625),
        ({"metric": "parameters+optimizer", "recompute": "any"}, 48 * 12 * 6144**2 / 8 * 18 / 2**30),
        (
            {"metric": "activation memory relative to no recompute", "recompute": "full"},
            100 * 2 / (10 + 24 / 8 + 40 / 3),
        ),
    ],
)
def test_memory_of_layers(changes: dict[str, Any], expected: float) -> None:
    """The closed forms of Korthikanti et al., with 5as/h = 320/3 for the model of 22 billion parameters."""
    shape = {"layers": 48, "hidden": 6144, "heads": 64, "ffn": None, "vocab": None}
    unit = "percent" if "relative" in changes["metric"] else "GiB"
    measured = place(replace(MEMORY, **shape, **changes, unit=unit))
    assert in_metric(measured, STEP) == pytest.approx(expected, rel=1e-3)
    assert any("layers alone" in text for text in measured.assumptions)


def test_memory_in_an_unknown_unit_is_refused() -> None:
    for metric, unit in [("activations", "percent"), ("activation memory relative to no recompute", "GiB")]:
        with pytest.raises(RefusedError, match=unit):
            metric_faults(replace(MEMORY, metric=metric, unit=unit))


def test_peak_memory_counts_the_segment_of_logits_that_nothing_else_fits() -> None:
    titan = replace(ROW, source="torchtitan", unit="GiB", metric="peak memory", tp=1, gpus=1, recompute="full")
    held = {
        metric: in_metric(place(replace(titan, metric=metric)), STEP)
        for metric in ("peak memory", "max_memory_allocated")
    }
    logits = 2 * ROW.micro_batch * ROW.seq_len * ROW.vocab  # type: ignore[operator]
    assert held["peak memory"] - held["max_memory_allocated"] == pytest.approx(logits / 2**30)
    megatron = place(replace(titan, source="Megatron-LM SC21 Table 1"))
    assert in_metric(megatron, STEP) == STEP.peak_bytes / 2**30
