"""Names of models in their sources' words."""

from __future__ import annotations

import pytest

from clustersim.study.steps.model_names import card_called, card_in, nearest_card


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("LLAMA3_8B", "llama-3-8b"),
        ("Llama 3 8B", "llama-3-8b"),
        ("Llama-2-70B chat", "llama-2-70b"),
        ("DeepSeek V3 671B", "deepseek-v3"),
        ("DeepSeek-V2-Lite", "deepseek-v2-lite"),
        ("Qwen3 MoE 30B", "qwen3-30b-a3b"),
        ("OPT-13B", "opt-13b"),
        ("opt_13", "opt-1.3b"),
        ("nemotron-3-nano-30b-a3b", "nemotron-3-nano"),
    ],
)
def test_words_in_a_name(name: str, card: str) -> None:
    assert card_in(name) == card


@pytest.mark.parametrize("name", ["DeepSeek-V3.2", "Llama 3.8B", "Qwen2-57B-A14B", "TinyLlama 1.1B"])
def test_other_versions_and_sizes_are_other_models(name: str) -> None:
    assert card_in(name) is None


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("Mixtral-8x7B", "mixtral-8x7b"),
        ("GPT-OSS 20B", "gpt-oss-20b"),
        ("gpt_neox_20B", "gpt-neox-20b"),
        ("Qwen2-57B-A14B", "qwen2-57b-a14b"),
        ("GPT 18B", None),  # many models are GPTs of some size
        ("Qwen3-14B / GPT-OSS-20B", None),
        ("Mixtral 8x9B", None),
    ],
)
def test_whole_names(name: str, card: str | None) -> None:
    assert card_called(name) == card


def test_the_nearest_card() -> None:
    assert nearest_card("Mixtral 8x9B") == "mixtral-8x7b"
    assert nearest_card("banana") is None
