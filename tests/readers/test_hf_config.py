"""Configs written here, and the parameter counts that the models' publishers state."""

import json
from pathlib import Path
from typing import Any

import pytest

from clustersim.faults import BadInput, Fault
from clustersim.readers import hf_config
from clustersim.workload.shape.sliding_window import SlidingWindow

Config = dict[str, Any]


def llama(layers: int, hidden: int, heads: int, ffn: int, vocab: int = 32_000, **more: Any) -> Config:
    return {
        "model_type": "llama",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        **more,
    }


def gpt2(layers: int, hidden: int, heads: int) -> Config:
    return {"model_type": "gpt2", "n_layer": layers, "n_embd": hidden, "n_head": heads, "vocab_size": 50_257}


def opt(layers: int, hidden: int, heads: int, **more: Any) -> Config:
    shape = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
    return {"model_type": "opt", **shape, "ffn_dim": 4 * hidden, "vocab_size": 50_272, **more}


def bloom(layers: int, hidden: int, heads: int) -> Config:
    shape = {"n_layer": layers, "hidden_size": hidden, "n_head": heads}
    return {"model_type": "bloom", **shape, "vocab_size": 250_880, "seq_length": 2048}


def neox(layers: int, hidden: int, heads: int, vocab: int) -> Config:
    return llama(layers, hidden, heads, 4 * hidden, vocab, model_type="gpt_neox")


TINY = llama(2, 64, 8, 96, 100, num_key_value_heads=4, max_position_embeddings=128)
QWEN = {"vocab": 152_064, "model_type": "qwen2"}

PUBLISHED = [
    ("gpt2", gpt2(12, 768, 12), 124_439_808),
    ("gpt2-xl", gpt2(48, 1600, 25), 1_557_611_200),
    ("llama-2-7b", llama(32, 4096, 32, 11_008), 6_738_415_616),
    ("llama-2-13b", llama(40, 5120, 40, 13_824), 13_015_864_320),
    ("llama-2-70b", llama(80, 8192, 64, 28_672, num_key_value_heads=8), 68_976_648_192),
    ("llama-3-8b", llama(32, 4096, 32, 14_336, 128_256, num_key_value_heads=8), 8_030_261_248),
    ("llama-3-70b", llama(80, 8192, 64, 28_672, 128_256, num_key_value_heads=8), 70_553_706_496),
    ("llama-3.1-405b", llama(126, 16_384, 128, 53_248, 128_256, num_key_value_heads=8), 405_853_388_800),
    ("mistral-7b", llama(32, 4096, 32, 14_336, model_type="mistral"), 7_241_732_096),
    ("mistral-nemo", llama(40, 5120, 32, 14_336, 131_072, model_type="mistral", head_dim=128), 12_247_782_400),
    (
        "qwen2.5-0.5b",
        llama(24, 896, 14, 4864, 151_936, model_type="qwen2", num_key_value_heads=2, tie_word_embeddings=True),
        494_032_768,
    ),
    ("qwen2.5-7b", llama(28, 3584, 28, 18_944, **QWEN, num_key_value_heads=4), 7_615_616_512),
    ("qwen2.5-72b", llama(80, 8192, 64, 29_568, **QWEN, num_key_value_heads=8), 72_706_203_648),
    ("qwen3-8b", llama(36, 4096, 32, 12_288, 151_936, model_type="qwen3", num_key_value_heads=8), 8_190_735_360),
    ("bloom", bloom(70, 14_336, 112), 176_247_271_424),
    ("bloom-560m", bloom(24, 1024, 16), 559_214_592),
    ("opt-125m", opt(12, 768, 12), 125_239_296),
    ("opt-350m", opt(24, 1024, 16, word_embed_proj_dim=512, do_layer_norm_before=False), 331_196_416),
    ("opt-13b", opt(40, 5120, 40), 12_853_473_280),
    ("gpt-neox-20b", neox(44, 6144, 64, 50_432), 20_554_567_680),
    ("pythia-410m", neox(24, 1024, 16, 50_304), 405_334_016),
]


def write(folder: Path, config: object, name: str = "tiny.json") -> Path:
    path = folder / name
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return path


def faults_of(folder: Path, config: object) -> dict[str, Fault]:
    with pytest.raises(BadInput) as caught:
        hf_config.read(write(folder, config))
    assert all(fault.file.endswith("tiny.json") for fault in caught.value.faults)
    return {fault.key: fault for fault in caught.value.faults}


@pytest.mark.parametrize(("config", "count"), [case[1:] for case in PUBLISHED], ids=[case[0] for case in PUBLISHED])
def test_published_parameter_counts(tmp_path: Path, config: Config, count: int) -> None:
    model, _ = hf_config.read(write(tmp_path, config))
    assert model.num_parameters == count


def test_the_name_is_that_of_the_file_or_its_folder(tmp_path: Path) -> None:
    assert hf_config.read(write(tmp_path, TINY))[0].name == "tiny"
    folder = tmp_path / "Tiny-7B"
    folder.mkdir()
    assert hf_config.read(write(folder, TINY, "config.json"))[0].name == "Tiny-7B"


def test_every_field_says_where_it_comes_from(tmp_path: Path) -> None:
    model, _ = hf_config.read(write(tmp_path, TINY))
    assert model.sources["hidden"] == "tiny.json: hidden_size"
    assert model.sources["head_dim"] == "assumed: head_dim is absent from tiny.json"
    assert model.sources["gated_mlp"] == "architecture: llama"


def test_defaults_taken_are_noted(tmp_path: Path) -> None:
    _, notes = hf_config.read(write(tmp_path, gpt2(2, 64, 4)))
    assert notes == [
        "absent keys take the defaults of gpt2: n_inner = 256, n_positions = 1024, tie_word_embeddings = True"
    ]


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("llama", {}, 64),
        ("mistral", {}, 8),
        ("mistral", {"num_key_value_heads": None}, 64),
        ("qwen2", {}, 32),
        ("qwen3", {"num_key_value_heads": 16}, 16),
    ],
)
def test_absent_and_null_key_heads(tmp_path: Path, kind: str, given: Config, expected: int) -> None:
    model, _ = hf_config.read(write(tmp_path, llama(2, 512, 64, 96, model_type=kind, **given)))
    assert model.num_kv_heads == expected


def test_a_stated_head_dim_need_not_divide(tmp_path: Path) -> None:
    model, _ = hf_config.read(write(tmp_path, TINY | {"num_attention_heads": 12, "head_dim": 5}))
    assert model.layer_matrices["qkv"] == (64, (12 + 2 * 4) * 5)


@pytest.mark.parametrize(
    ("config", "changed"),
    [
        (TINY | {"attention_bias": True}, {"qkv_bias": True, "attention_output_bias": True}),
        (TINY | {"mlp_bias": True}, {"mlp_bias": True}),
        (opt(2, 64, 4, enable_bias=False), {"qkv_bias": False, "attention_output_bias": False, "mlp_bias": False}),
        (opt(2, 64, 4, _remove_final_layer_norm=True), {"final_norm": False}),
        (neox(2, 64, 4, 100) | {"attention_bias": False}, {"qkv_bias": False, "mlp_bias": True}),
        (neox(2, 64, 4, 100) | {"use_parallel_residual": False}, {"parallel_residual": False}),
    ],
)
def test_switches(tmp_path: Path, config: Config, changed: dict[str, bool]) -> None:
    model, _ = hf_config.read(write(tmp_path, config))
    assert {name: getattr(model, name) for name in changed} == changed


@pytest.mark.parametrize(
    ("extra", "note"),
    [
        ({"sliding_window": 64}, "sliding_window = 64 is ignored: attention is counted over the whole sequence"),
        ({"layer_types": ["a", "b"]}, "layer_types = ['a', 'b'] is ignored: attention is counted over the whole"),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, "rope_scaling = "),
        ({"num_local_experts": 8}, "num_local_experts = 8 is ignored: the MLP is counted as dense"),
        (
            {"quantization_config": {"bits": 4}},
            "quantization_config = {'bits': 4} is ignored: weights are counted in the",
        ),
        ({"architectures": ["LlamaForSequenceClassification"]}, "architectures = "),
        ({"num_loops": 3}, "num_loops = 3 is ignored: not a key that llama is known to have"),
    ],
)
def test_ignored_keys_that_matter_are_noted(tmp_path: Path, extra: Config, note: str) -> None:
    known = {"attention_bias": False, "mlp_bias": False, "head_dim": 8, "tie_word_embeddings": False}
    _, notes = hf_config.read(write(tmp_path, TINY | known | extra))
    assert len(notes) == 1
    assert notes[0].startswith(note)


def test_harmless_keys_are_not_noted(tmp_path: Path) -> None:
    harmless = {
        "_name_or_path": "somewhere",
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.1,
        "bos_token_id": 1,
        "head_dim": 8,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "layer_types": ["full_attention", "full_attention"],
        "mlp_bias": False,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "sliding_window": 128,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": True,
    }
    assert hf_config.read(write(tmp_path, TINY | harmless))[1] == []


def test_the_window_of_mistral_is_taken_though_absent(tmp_path: Path) -> None:
    model, notes = hf_config.read(write(tmp_path, TINY | {"model_type": "mistral", "max_position_embeddings": 8192}))
    assert model.window == SlidingWindow(tokens=4096)
    assert any("sliding_window = 4096" in note for note in notes)


def test_a_window_that_is_switched_off_is_not_noted(tmp_path: Path) -> None:
    config = TINY | {"model_type": "qwen2", "sliding_window": 16, "use_sliding_window": False}
    assert not any("sliding_window" in note for note in hf_config.read(write(tmp_path, config))[1])


@pytest.mark.parametrize(("kind", "nearest"), [("llama4", "llama"), ("rwkv", None), ("qwen3-moe", "qwen3_moe")])
def test_other_architectures_are_refused(tmp_path: Path, kind: str, nearest: str | None) -> None:
    fault = faults_of(tmp_path, {"model_type": kind})["model_type"]
    assert fault.value == kind
    assert fault.rule == f"is not yet supported; supported: {', '.join(sorted(hf_config.ARCHITECTURES))}"
    assert fault.nearest == nearest


def test_another_spelling_of_an_architecture(tmp_path: Path) -> None:
    assert faults_of(tmp_path, {"model_type": "GPT-NeoX"})["model_type"].nearest == "gpt_neox"


def test_no_architecture(tmp_path: Path) -> None:
    assert faults_of(tmp_path, {"hidden_size": 64})["model_type"].rule.startswith("must be given, as one of: bert,")


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    config = TINY | {
        "num_hidden_layers": 1_000_000_000,
        "num_key_value_heads": 3,
        "intermediate_size": -96,
        "vocab_size": "100",
        "tie_word_embeddings": "yes",
    }
    del config["hidden_size"]
    faults = faults_of(tmp_path, config)
    assert {key: (fault.rule, fault.nearest) for key, fault in faults.items()} == {
        "hidden_size": ("must be a whole number from 1 to 1048576, and is missing", None),
        "num_hidden_layers": ("must be a whole number from 1 to 10000", 10_000),
        "num_key_value_heads": ("must divide the 8 attention heads", 2),
        "intermediate_size": ("must be a whole number from 1 to 16777216", 1),
        "vocab_size": ("must be a whole number from 1 to 16777216", 100),
        "tie_word_embeddings": ("must be true or false", False),
    }


@pytest.mark.parametrize("value", [0, -1, 64.0, float("nan"), float("inf"), True, [64], {}, "wide"])
def test_values_that_are_no_width(tmp_path: Path, value: object) -> None:
    assert list(faults_of(tmp_path, TINY | {"hidden_size": value})) == ["hidden_size"]


def test_heads_that_do_not_divide_the_width(tmp_path: Path) -> None:
    fault = faults_of(tmp_path, TINY | {"num_attention_heads": 12})["num_attention_heads"]
    assert fault.rule == "must divide the hidden size of 64 where head_dim is absent"
    assert fault.nearest == 8


def test_names_of_one_thing_must_agree(tmp_path: Path) -> None:
    fault = faults_of(tmp_path, gpt2(2, 64, 4) | {"hidden_size": 128})["hidden_size"]
    assert fault.rule == "must equal n_embd, its other name"
    assert fault.nearest == 64


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (gpt2(2, 64, 4) | {"add_cross_attention": True}, "add_cross_attention"),
        (opt(2, 64, 4, layer_norm_elementwise_affine=False), "layer_norm_elementwise_affine"),
    ],
)
def test_what_is_not_modelled_and_changes_the_count(tmp_path: Path, config: Config, key: str) -> None:
    assert list(faults_of(tmp_path, config)) == [key]


def test_detect(tmp_path: Path) -> None:
    assert hf_config.detect(write(tmp_path, {"model_type": "mixtral"}))
    assert hf_config.detect(write(tmp_path, {"architectures": ["LlamaForCausalLM"]}))
    assert not hf_config.detect(write(tmp_path, {"train_batch_size": 8, "zero_optimization": {"stage": 3}}))
    assert not hf_config.detect(write(tmp_path, "{"))
    assert not hf_config.detect(tmp_path / "absent.json")
