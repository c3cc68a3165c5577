"""Training FLOP a token that a paper states for several models.

DeepSeek-AI, Insights into DeepSeek-V3, 2025 (arXiv 2505.09343), Table 2: sequences of 4096 tokens, causal attention.
Its row of a Qwen with 72 billion parameters is left out: which one it is of, it does not say.
"""

from dataclasses import replace

import pytest

from clustersim.library.model import load_model
from clustersim.workload.model_flops import training_flops

SEQ_LEN = 4096


@pytest.mark.parametrize(
    ("name", "gflop_per_token", "error"),
    [("deepseek-v2", 155, 0.003), ("deepseek-v3", 250, 0.003), ("llama-3.1-405b", 2448, 0.011)],
)
def test_training_flop_a_token(name: str, gflop_per_token: float, error: float) -> None:
    main_model = replace(load_model(name), mtp=0)
    flops = training_flops(main_model, SEQ_LEN)
    assert flops.total / SEQ_LEN / 1e9 == pytest.approx(gflop_per_token, rel=error)
