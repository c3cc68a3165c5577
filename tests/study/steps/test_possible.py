"""Numbers of a row that its hardware cannot have, and all refusals of a row at once."""

from __future__ import annotations

from typing import Any

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.possible import check_numbers
from clustersim.study.steps.predict import predict
from clustersim.study.steps.refusal import RefusedError


def row(**given: Any) -> StepRow:
    said: dict[str, Any] = {
        "source": "lab",
        "hardware": "A100-SXM4-80GB",
        "metric": "mfu",
        "unit": "percent",
        "value": 40.0,
    }
    return StepRow(line=2, **(said | given))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"value": 100.0},
        {"value": 1.0, "unit": "fraction"},
        {"value": 312.0, "metric": "tflops_per_gpu", "unit": "TFLOP/s/GPU"},
        {"value": 60.0, "hardware": "V100-SXM2-32GB"},
        {"value": 150.0, "hardware": "H100-SXM5-80GB", "precision": "fp8", "unit": "percent of 989 TFLOP/s"},
        {"gpus": 10, "nodes": 4},
        {"value": 1e6, "metric": "tokens_per_s", "unit": "tokens/s"},
    ],
)
def test_what_is_possible(given: dict[str, Any]) -> None:
    check_numbers(row(**given))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"value": 101.0}, "101 percent: the dense peak of a100-sxm-80gb is 312 TFLOP/s"),
        ({"value": 40.0, "unit": "fraction"}, "40 fraction"),
        ({"value": 313.0, "metric": "tflops_per_gpu", "unit": "TFLOP/s/GPU"}, "tflops_per_gpu 313"),
        ({"value": 150.0, "hardware": "H100-SXM5-80GB", "precision": "bf16"}, "mfu 150"),
        ({"gpus": 12, "nodes": 5}, "12 ranks, 3 on each of 5 nodes"),
        ({"gpus": 8, "nodes": 16, "value": 140.0}, "nodes; mfu 140 percent"),
        ({"gpus": 8, "nodes": 16}, "8 ranks, 1 on each of 16 nodes"),
        ({"gpus": 32, "nodes": 2}, "32 GPUs on 2 nodes of 8"),
    ],
)
def test_what_is_not(given: dict[str, Any], told: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_numbers(row(**given))
    assert refused.value.reason == "its numbers disagree"
    assert told in refused.value.detail


def test_every_refusal_of_a_row_is_told() -> None:
    (outcome,) = predict([row(hardware="abacus", metric="joy", precision="int3", gpus=8, tp=4, offload="to the moon")])
    assert outcome.reason == "the metric is not predicted"
    for words in ("metric 'joy'", "hardware 'abacus'", "precision 'int3'", "offload 'to the moon'", "without layers"):
        assert words in outcome.detail
    assert "the sequence length is not published" not in outcome.detail  # offloading hides the batch
