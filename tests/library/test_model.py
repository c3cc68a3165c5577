"""Model cards against the parameter counts that papers and model pages state."""

import json
from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.library.card import list_cards, read_card
from clustersim.library.model import load_model

EXACT = {
    "bloom-176b": 176_247_271_424,
    "bloom-560m": 559_214_592,
    "bloom-7b1": 7_069_016_064,
    "gpt-neox-20b": 20_554_567_680,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "mistral-nemo-12b": 12_247_782_400,
    "opt-125m": 125_239_296,
    "opt-350m": 331_196_416,
    "opt-6.7b": 6_658_473_984,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-8b": 8_190_735_360,
}

# Table 1 of arXiv 2104.04473 [billions]. Its formula leaves out the final norm, 2h of them.
MEGATRON = {
    "gpt-1.7b": 1.7,
    "gpt-3.6b": 3.6,
    "gpt-7.5b": 7.5,
    "gpt-18b": 18.4,
    "gpt-39b": 39.1,
    "gpt-76b": 76.1,
    "gpt-145b": 145.6,
    "gpt-310b": 310.1,
    "gpt-530b": 529.6,
    "gpt-1t": 1008.0,
}

NAMES = [name for name, _ in list_cards()["model"]]


@pytest.mark.parametrize("name", NAMES)
def test_every_card_loads_under_its_own_name(name: str) -> None:
    assert load_model(name).name == name
    assert read_card("model", name).description


@pytest.mark.parametrize(("name", "count"), EXACT.items())
def test_published_parameter_counts(name: str, count: int) -> None:
    assert load_model(name).num_parameters == count


@pytest.mark.parametrize(("name", "billions"), MEGATRON.items())
def test_megatron_parameter_counts(name: str, billions: float) -> None:
    model = load_model(name)
    h, layers = model.hidden, model.num_layers
    formula = 12 * layers * h**2 * (1 + 13 / (12 * h) + (model.vocab + model.max_seq_len) / (12 * layers * h))
    assert model.num_parameters == round(formula) + 2 * h
    assert model.num_parameters / 1e9 == pytest.approx(billions, abs=0.051)


def test_a_card_and_a_config_of_one_model_agree(tmp_path: Path) -> None:
    path = tmp_path / "qwen3-8b.json"
    config = {
        "model_type": "qwen3",
        "num_hidden_layers": 36,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 12_288,
        "vocab_size": 151_936,
        "max_position_embeddings": 40_960,
        "tie_word_embeddings": False,
        "attention_bias": False,
    }
    path.write_text(json.dumps(config))
    assert load_model(path) == load_model("qwen3-8b")


def test_notes_of_a_config_are_warnings(tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    shape = {"n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 32, "n_inner": 256}
    path.write_text(json.dumps({"model_type": "gpt2", **shape}))
    with pytest.warns(UserWarning, match=r"tiny\.json: absent keys take the defaults of gpt2: tie_word_embeddings"):
        load_model(path)


def test_a_config_is_found_beside_the_card_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=str(tmp_path / "absent.json")):
        load_model("absent.json", beside=tmp_path / "job.toml")


def test_a_slip_in_a_card_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = read_card("model", "llama-3-8b").path.read_text()
    path.write_text(text.replace("num_kv_heads = 8", "num_kv_heads = 7").replace("gated_mlp", "gated"))
    with pytest.raises(BadInput) as caught:
        load_model(path)
    assert {fault.key for fault in caught.value.faults} == {"gated", "gated_mlp"}


def test_a_broken_rule_in_a_card_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(read_card("model", "llama-3-8b").path.read_text().replace("num_kv_heads = 8", "num_kv_heads = 7"))
    with pytest.raises(BadInput, match="num_kv_heads: 7 must divide the 32 query heads"):
        load_model(path)


def test_a_name_that_is_almost_right() -> None:
    with pytest.raises(BadInput) as caught:
        load_model("llama3-8b")
    assert caught.value.faults[0].nearest == "llama-3-8b"
