"""``show model`` on configs and cards of several architectures."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

GEMMA = {
    "model_type": "gemma2",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 100,
    "sliding_window": 16,
    "quantization_config": {"bits": 4},
}


def test_a_mixture_of_experts(call: Callable[..., Any]) -> None:
    answer = call("show", "model", "deepseek-v3", "--json").json
    assert answer["architecture"] == "mixture-of-experts decoder"
    assert answer["num_parameters"] == 671_026_419_200
    assert answer["num_active_parameters"] < 0.06 * answer["num_parameters"]
    assert answer["layers"] == {"latent_attention + mlp": 3, "latent_attention + experts": 58}
    assert answer["shapes"]["experts"]["top_k"] == 8
    assert "adapters" not in answer["shapes"]
    assert answer["warnings"] == []


def test_what_a_config_leaves_open_and_what_is_ignored(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(GEMMA))
    answer = call("show", "model", "mine.json", "--json").json
    assert answer["layers"] == {"attention + mlp, window 16": 2, "attention + mlp": 2}
    assert len(answer["warnings"]) == 2
    assert "max_position_embeddings = 8192" in answer["warnings"][0]
    assert "quantization_config = {'bits': 4} is ignored" in answer["warnings"][1]
    text = call("show", "model", "mine.json")
    assert "warnings" not in text.out
    assert text.err.count("warning: mine.json: ") == 2


def test_a_nearby_architecture_is_offered(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(GEMMA | {"model_type": "gemma-2"}))
    answer = call("show", "model", "mine.json", "--json")
    assert answer.code == 2
    assert answer.json["errors"][0]["nearest"] == "gemma2"
