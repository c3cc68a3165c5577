"""BLOOM on 384 A100 of Jean Zay, as its makers report it.

BigScience, project page and training script (bigscience-workshop/bigscience, train/tr11-176B-ml): about 150 TFLOP/s a
GPU, recomputation included, and 60 GB of memory a GPU. Their TFLOP/s are 96·B·s·l·h²·(1 + s/(6h) + V/(16·l·h)) a step.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from clustersim.analysis.summary import summary
from clustersim.library.job import load_job
from clustersim.library.model import load_model
from clustersim.study.point import run_point


@cache
def step() -> dict[str, Any]:
    return dict(summary(run_point(load_job("bloom-176b-384"))))


def rate() -> float:
    """FLOP/s a GPU, as its makers count them."""
    model = load_model("bloom-176b")
    h, layers, s, vocab = model.hidden, model.num_layers, 2048, model.vocab
    flops = 96 * 2048 * s * layers * h**2 * (1 + s / (6 * h) + vocab / (16 * layers * h))
    return float(flops / step()["step_time_s"] / 384)


@pytest.mark.xfail(
    strict=True,
    reason="5.5 % too slow: a host that waits for each kernel adds all of its time, and what layers take it is "
    "measured on another processor, of a later library",
)
def test_rate_of_a_gpu() -> None:
    assert rate() == pytest.approx(150e12, rel=0.05)
    assert rate() < 150e12


def test_the_readme_says_so(readme_row: Callable[[str], list[Any]]) -> None:
    assert [rate() / 1e12] == readme_row("BLOOM 176B on 384 A100, recomputation counted")


def test_first_and_last_stage_have_a_layer_less() -> None:
    assert any("split 5, 10 x 6, 5" in note for note in step()["warnings"])


@pytest.mark.xfail(
    strict=True,
    reason="42 GB: DeepSpeed keeps gradients in bf16 beside those in fp32, gathers weights into buffers, and what CUDA "
    "and the allocator take is not modelled",
)
def test_memory_of_a_gpu() -> None:
    assert step()["peak_memory_bytes"]["gpu"] == pytest.approx(60e9, rel=0.15)
