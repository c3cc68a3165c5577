"""Llama 3 405B with sequences of 131,072 tokens over 16 ranks each, on 16,384 GPUs.

Source: Grattafiori et al., The Llama 3 Herd of Models, 2024, table 4: 380 TFLOP/s a GPU, 38 % of the bf16 peak.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clustersim as cs
from clustersim.study.point import run_point


def test_utilisation_of_the_long_context_phase(readme_row: Callable[[str], list[Any]]) -> None:
    found = cs.summary(run_point(cs.load_job("llama-3-405b-long-context")))
    assert found["fits"]
    assert found["mfu"] == pytest.approx(0.38, abs=0.03)
    assert found["model_flops_per_gpu_per_s"] == pytest.approx(380e12, rel=0.08)
    assert found["num_classes"] == 16
    rate = found["model_flops_per_gpu_per_s"] / 1e12
    assert [rate] == readme_row("the same, 131,072 tokens, context parallelism 16")
