"""Llama 3 405B at 8k tokens, after The Llama 3 Herd of Models, 2024 (arXiv 2407.21783), Table 4.

430 TFLOP/s a GPU on 8,192 H100 and 400 on 16,384, with 16 M tokens a step on both. How many chunks a stage has is not
published; the job card assumes one layer each.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from clustersim.analysis.summary import summary
from clustersim.library.job import load_job
from clustersim.study.point import run_point


@cache
def step(num_gpus: int) -> dict[str, Any]:
    values = {"nodes": num_gpus // 8, "plan.dp": num_gpus // 128}
    return dict(summary(run_point(load_job("llama-3-405b-16k").with_values(values))))


@pytest.mark.parametrize(("num_gpus", "tflop_per_s"), [(8192, 430), (16_384, 400)])
def test_rate_of_a_gpu(num_gpus: int, tflop_per_s: float) -> None:
    """5.5 % too fast and 6.1 % too slow."""
    assert step(num_gpus)["model_flops_per_gpu_per_s"] / 1e12 == pytest.approx(tflop_per_s, rel=0.08)


def test_the_readme_says_so(readme_row: Callable[[str], list[Any]]) -> None:
    rate = step(16_384)["model_flops_per_gpu_per_s"] / 1e12
    assert [rate] == readme_row("Llama 3 405B on 16,384 H100, 8,192 tokens")


def test_twice_the_gpus_share_a_batch_less_well() -> None:
    assert step(16_384)["bubble_fraction"] > step(8192)["bubble_fraction"]
    assert step(16_384)["step_time_s"] < step(8192)["step_time_s"] < 2 * step(16_384)["step_time_s"]


def test_16384_gpus_hold_it_without_recomputation() -> None:
    assert step(16_384)["status"] == "ok"


@pytest.mark.xfail(
    strict=True,
    reason="1.2 GiB over, most of it activations: of 32 micro-batches in eight assumed chunks more are in flight than "
    "of 16",
)
def test_8192_gpus_hold_it_without_recomputation() -> None:
    assert step(8192)["status"] == "ok"
