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
    "bert-base": 109_514_298,
    "bert-large": 335_174_458,
    "bert-large-pretraining": 336_226_108,
    "clip-vit-l-14": 427_616_513,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_419_200,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2-27b": 27_227_128_320,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "mamba-2.8b": 2_768_345_600,
    "mamba2-2.7b": 2_702_599_680,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "mpt-7b": 6_649_286_656,
    "mt5-small": 300_176_768,
    "mt5-base": 582_401_280,
    "mt5-large": 1_229_581_312,
    "mt5-xl": 3_742_619_648,
    "mt5-xxl": 12_921_057_280,
    "phi-3-mini": 3_821_079_552,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "t5-large": 737_668_096,
    "t5-11b": 11_307_321_344,
    "vit-b-16": 86_567_656,
    "vit-l-16": 304_326_632,
    "vit-h-14": 632_045_800,
}

# (all parameters, those that a token meets) as the models' pages and papers state them [billions]. gpt-oss leaves the
# embedding out of the second.
STATED = {
    "deepseek-v2": (236, 21),
    "deepseek-v3": (671, 37),
    "mixtral-8x7b": (46.7, 12.9),
    "mixtral-8x22b": (141, 39),
    "qwen1.5-moe-a2.7b": (14.3, 2.7),
    "qwen2-57b-a14b": (57.4, 14),
    "qwen3-30b-a3b": (30.5, 3.3),
    "qwen3-235b-a22b": (235, 22),
    "nemotron-h-8b": (8.1, 8.1),
    "nemotron-3-nano": (31.6, 3.6),
    "nemotron-3-super": (120.6, 12.7),
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


@pytest.mark.parametrize(("name", "billions"), STATED.items())
def test_stated_totals_and_active_parameters(name: str, billions: tuple[float, float]) -> None:
    model = load_model(name)
    found = (model.num_parameters, model.num_active_parameters)
    assert tuple(count / 1e9 for count in found) == pytest.approx(billions, rel=0.02)


@pytest.mark.parametrize(("name", "billions"), [("gpt-oss-20b", 3.61), ("gpt-oss-120b", 5.13)])
def test_active_parameters_without_the_embedding(name: str, billions: float) -> None:
    model = load_model(name)
    active = model.num_active_parameters - model.parameters_by_part["embedding"]
    assert active / 1e9 == pytest.approx(billions, abs=0.005)


def test_a_module_that_predicts_a_second_token_is_counted_apart() -> None:
    model = load_model("deepseek-v3")
    assert model.num_parameters + model.mtp_parameters == model.num_trainable_parameters
    assert model.mtp_parameters / 1e9 == pytest.approx(11.5, abs=0.15)


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


def test_parts_of_a_card_are_checked_by_their_own_keys(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = read_card("model", "mixtral-8x7b").path.read_text()
    path.write_text(text.replace("top_k = 2", "topk = 2"))
    with pytest.raises(BadInput) as caught:
        load_model(path)
    assert {(fault.key, fault.nearest) for fault in caught.value.faults} == {
        ("experts.topk", "top_k"),
        ("experts.top_k", None),
    }
    path.write_text(text.replace("top_k = 2", "top_k = 9"))
    with pytest.raises(BadInput, match=r"experts\.top_k: 9 must be at most the 8 experts"):
        load_model(path)


def test_adapters_are_a_table_of_a_card(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = read_card("model", "llama-2-7b").path.read_text()
    adapters = '[adapters]\nrank = 8\ntargets = ["q", "v"]\n\n[sources]\nadapters = "assumed"'
    path.write_text(text.replace("[sources]", adapters))
    # Two matrices a layer of 4096 x 4096: 32 layers, rank 8.
    assert load_model(path).num_trainable_parameters == 32 * 2 * 8 * (4096 + 4096)
    path.write_text(path.read_text().replace('"v"', '"w"'))
    with pytest.raises(BadInput, match=r"adapters\.targets"):
        load_model(path)


def test_a_name_that_is_almost_right() -> None:
    with pytest.raises(BadInput) as caught:
        load_model("llama3-8b")
    assert caught.value.faults[0].nearest == "llama-3-8b"
