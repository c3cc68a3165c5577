"""Configs of published models of every architecture, and the parameter counts that their publishers state."""

import json
from pathlib import Path
from typing import Any

import pytest

from clustersim.faults import BadInput, Fault
from clustersim.library.model import load_model
from clustersim.readers import hf_config
from clustersim.workload.model import Model
from clustersim.workload.shape.sliding_window import SlidingWindow

Config = dict[str, Any]


def shape(kind: str, layers: int, hidden: int, heads: int, ffn: int, vocab: int, **more: Any) -> Config:
    return {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        **more,
    }


FALCON_7B = {
    "model_type": "falcon",
    "num_hidden_layers": 32,
    "hidden_size": 4544,
    "num_attention_heads": 71,
    "vocab_size": 65_024,
}
FALCON_40B = FALCON_7B | {
    "num_hidden_layers": 60,
    "hidden_size": 8192,
    "num_attention_heads": 128,
    "num_kv_heads": 8,
    "new_decoder_architecture": True,
}
MPT = {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50_432, "max_seq_len": 2048}
PHI3 = shape("phi3", 32, 3072, 32, 8192, 32_064, num_key_value_heads=32, sliding_window=2047)
GEMMA2 = shape("gemma2", 26, 2304, 8, 9216, 256_000, num_key_value_heads=4, head_dim=256, sliding_window=4096)
GEMMA_2B = shape("gemma", 18, 2048, 8, 16_384, 256_000, num_key_value_heads=1, head_dim=256)
GEMMA3_1B = shape("gemma3_text", 26, 1152, 4, 6912, 262_144, num_key_value_heads=1, head_dim=256, sliding_window=512)
MIXTRAL = shape("mixtral", 32, 4096, 32, 14_336, 32_000, max_position_embeddings=32_768)
QWEN3_MOE = shape(
    "qwen3_moe",
    48,
    2048,
    32,
    6144,
    151_936,
    num_key_value_heads=4,
    head_dim=128,
    num_experts=128,
    num_experts_per_tok=8,
    moe_intermediate_size=768,
    max_position_embeddings=40_960,
)
QWEN2_MOE = shape(
    "qwen2_moe",
    24,
    2048,
    16,
    5632,
    151_936,
    num_experts=60,
    num_experts_per_tok=4,
    moe_intermediate_size=1408,
    shared_expert_intermediate_size=5632,
    max_position_embeddings=8192,
)
GPT_OSS = shape("gpt_oss", 24, 2880, 64, 2880, 201_088, num_local_experts=32, num_key_value_heads=8, head_dim=64)
DEEPSEEK_V3 = shape(
    "deepseek_v3",
    61,
    7168,
    128,
    18_432,
    129_280,
    num_key_value_heads=128,
    first_k_dense_replace=3,
    moe_intermediate_size=2048,
    moe_layer_freq=1,
    n_group=8,
    topk_group=4,
    n_routed_experts=256,
    n_shared_experts=1,
    num_experts_per_tok=8,
    num_nextn_predict_layers=1,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    topk_method="noaux_tc",
    max_position_embeddings=163_840,
)
DEEPSEEK_V2_LITE = shape(
    "deepseek_v2",
    27,
    2048,
    16,
    10_944,
    102_400,
    first_k_dense_replace=1,
    moe_intermediate_size=1408,
    n_routed_experts=64,
    n_shared_experts=2,
    num_experts_per_tok=6,
    q_lora_rank=None,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    max_position_embeddings=163_840,
)
BERT = shape("bert", 24, 1024, 16, 4096, 30_522)
T5_11B = {"model_type": "t5", "num_layers": 24, "d_model": 1024, "num_heads": 128, "d_kv": 128, "d_ff": 65_536}
T5_11B |= {"vocab_size": 32_128}
MT5_SMALL = T5_11B | {"model_type": "mt5", "num_layers": 8, "d_model": 512, "num_heads": 6, "d_kv": 64, "d_ff": 1024}
MT5_SMALL |= {"vocab_size": 250_112, "feed_forward_proj": "gated-gelu"}
VIT = {"model_type": "vit", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16}
VIT |= {"intermediate_size": 4096, "num_labels": 1000, "architectures": ["ViTForImageClassification"]}
CLIP = {
    "model_type": "clip",
    "projection_dim": 768,
    "text_config": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    "vision_config": {
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "intermediate_size": 4096,
        "patch_size": 14,
    },
}
MAMBA = {"model_type": "mamba", "num_hidden_layers": 64, "hidden_size": 2560, "vocab_size": 50_280}
MAMBA2 = {
    "model_type": "mamba2",
    "num_hidden_layers": 64,
    "hidden_size": 2560,
    "vocab_size": 50_288,
    "num_heads": 80,
    "n_groups": 1,
    "tie_word_embeddings": True,
}
NEMOTRON_H = shape(
    "nemotron_h",
    52,
    4096,
    32,
    21_504,
    131_072,
    num_key_value_heads=8,
    head_dim=128,
    hybrid_override_pattern="M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    mamba_num_heads=128,
    mamba_head_dim=64,
    n_groups=8,
    ssm_state_size=128,
    chunk_size=128,
    max_position_embeddings=8192,
)

PUBLISHED = [
    ("falcon-7b", FALCON_7B, 6_921_720_704),
    ("falcon-40b", FALCON_40B, 41_303_293_952),
    ("mpt-7b", MPT, 6_649_286_656),
    ("phi-3-mini", PHI3, 3_821_079_552),
    ("gemma-2b", GEMMA_2B, 2_506_172_416),
    ("gemma-2-2b", GEMMA2, 2_614_341_888),
    ("gemma-3-1b", GEMMA3_1B, 999_885_952),
    ("mixtral-8x7b", MIXTRAL, 46_702_792_704),
    ("qwen1.5-moe-a2.7b", QWEN2_MOE, 14_315_784_192),
    ("qwen3-30b-a3b", QWEN3_MOE, 30_532_122_624),
    ("gpt-oss-20b", GPT_OSS, 20_914_757_184),
    ("deepseek-v2-lite", DEEPSEEK_V2_LITE, 15_706_484_224),
    ("deepseek-v3", DEEPSEEK_V3, 671_026_419_200),
    ("bert-large", BERT | {"architectures": ["BertForMaskedLM"]}, 335_174_458),
    ("bert-large-bare", BERT | {"architectures": ["BertModel"]}, 335_141_888),
    ("bert-large-pretraining", BERT | {"architectures": ["BertForPreTraining"]}, 336_226_108),
    ("t5-11b", T5_11B, 11_307_321_344),
    ("mt5-small", MT5_SMALL, 300_176_768),
    ("vit-l-16", VIT, 304_326_632),
    ("clip-vit-l-14", CLIP, 427_616_513),
    ("mamba-2.8b", MAMBA, 2_768_345_600),
    ("mamba2-2.7b", MAMBA2, 2_702_599_680),
]

SAME_AS_CARD = [
    ("phi-3-mini", PHI3),
    ("gemma-2-2b", GEMMA2),
    ("mixtral-8x7b", MIXTRAL),
    ("qwen1.5-moe-a2.7b", QWEN2_MOE),
    ("qwen3-30b-a3b", QWEN3_MOE),
    ("gpt-oss-20b", GPT_OSS),
    ("deepseek-v2-lite", DEEPSEEK_V2_LITE),
    ("deepseek-v3", DEEPSEEK_V3),
    ("bert-large", BERT),
    ("t5-11b", T5_11B),
    ("mt5-small", MT5_SMALL),
    ("vit-l-16", VIT),
    ("clip-vit-l-14", CLIP),
    ("falcon-7b", FALCON_7B),
    ("falcon-40b", FALCON_40B),
    ("mpt-7b", MPT),
    ("mamba-2.8b", MAMBA),
    ("mamba2-2.7b", MAMBA2),
    ("nemotron-h-8b", NEMOTRON_H),
]


def read(folder: Path, config: Config, name: str = "tiny") -> tuple[Model, list[str]]:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(config))
    return hf_config.read(path)


def faults_of(folder: Path, config: Config) -> dict[str, Fault]:
    with pytest.raises(BadInput) as caught:
        read(folder, config)
    return {fault.key: fault for fault in caught.value.faults}


@pytest.mark.parametrize(("config", "count"), [case[1:] for case in PUBLISHED], ids=[case[0] for case in PUBLISHED])
def test_published_parameter_counts(tmp_path: Path, config: Config, count: int) -> None:
    assert read(tmp_path, config)[0].num_parameters == count


@pytest.mark.parametrize(("name", "config"), SAME_AS_CARD, ids=[name for name, _ in SAME_AS_CARD])
def test_a_card_and_a_config_of_one_model_agree(tmp_path: Path, name: str, config: Config) -> None:
    assert read(tmp_path, config, name)[0] == load_model(name)


@pytest.mark.parametrize("kind", sorted(set(hf_config.ARCHITECTURES) - {"clip", "vit"}))
def test_an_empty_config_tells_all_that_is_missing(tmp_path: Path, kind: str) -> None:
    faults = faults_of(tmp_path, {"model_type": kind})
    assert len([fault for fault in faults.values() if "missing" in fault.rule]) >= 3


@pytest.mark.parametrize("kind", ["clip", "vit"])
def test_an_empty_config_of_images_is_all_defaults(tmp_path: Path, kind: str) -> None:
    _, notes = read(tmp_path, {"model_type": kind})
    assert notes[0].startswith(f"absent keys take the defaults of {kind}: ")
    assert "patch_size = " in notes[0]


@pytest.mark.parametrize(("name", "config"), SAME_AS_CARD, ids=[name for name, _ in SAME_AS_CARD])
def test_every_number_is_checked(tmp_path: Path, name: str, config: Config) -> None:
    free = {"num_key_value_heads"} if config["model_type"] == "deepseek_v3" else set()
    numbers = [key for key, value in config.items() if type(value) is int and key not in free]
    assert [key for key in numbers if key not in faults_of(tmp_path, config | {key: -1})] == []


def test_layers_that_see_all_by_their_types(tmp_path: Path) -> None:
    kinds = ["sliding_attention", "sliding_attention", "full_attention"] * 2
    config = shape("gemma2", 6, 64, 8, 96, 100, num_key_value_heads=4, head_dim=8, sliding_window=16)
    model, _ = read(tmp_path, config | {"layer_types": kinds})
    assert model.window == SlidingWindow(tokens=16, full_every=3)
    full, _ = read(tmp_path, config | {"layer_types": ["full_attention"] * 6})
    assert full.window is None
    for wrong in (kinds[:5], [*kinds[:5], "linear_attention"], ["full_attention", *kinds[:5]], "full_attention"):
        assert list(faults_of(tmp_path, config | {"layer_types": wrong})) == ["layer_types"]


def test_a_window_as_long_as_the_sequence_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, MIXTRAL | {"sliding_window": 32_768})[0].window is None
    assert read(tmp_path, MIXTRAL | {"sliding_window": 4096})[0].window == SlidingWindow(tokens=4096)


def test_a_window_that_is_switched_on_from_a_layer_on(tmp_path: Path) -> None:
    config = shape("qwen2", 6, 64, 8, 96, 100, num_key_value_heads=4, sliding_window=16)
    on = config | {"use_sliding_window": True, "max_window_layers": 2}
    assert read(tmp_path, on)[0].window == SlidingWindow(tokens=16, first_full=2)
    assert read(tmp_path, config)[0].window is None


@pytest.mark.parametrize(
    ("config", "changed"),
    [
        (FALCON_7B | {"multi_query": False}, {"num_kv_heads": 71}),
        (FALCON_7B | {"parallel_attn": False, "alibi": True}, {"shared_norm": False, "positions": "alibi"}),
        (FALCON_7B | {"bias": True}, {"qkv_bias": True, "attention_output_bias": True, "mlp_bias": True}),
        (FALCON_40B | {"num_ln_in_parallel_attn": 1}, {"shared_norm": True}),
        (MPT | {"attn_config": {"alibi": False}}, {"positions": "learned"}),
        (MPT | {"attn_config": {"alibi": False}, "learned_pos_emb": False}, {"positions": "none"}),
        (MPT | {"attn_config": {"attn_type": "multiquery_attention"}}, {"num_kv_heads": 1}),
        (MPT | {"attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 8}}, {"num_kv_heads": 8}),
        (MPT | {"no_bias": False}, {"norm_bias": True, "mlp_bias": True}),
        (T5_11B | {"feed_forward_proj": "gated-gelu", "num_decoder_layers": 6}, {"gated_mlp": True, "num_layers": 6}),
        (DEEPSEEK_V3 | {"num_nextn_predict_layers": 0}, {"mtp": 0}),
        (VIT | {"architectures": ["ViTModel"]}, {"pooler": True, "num_classes": 0}),
        (PHI3 | {"partial_rotary_factor": 0.5}, {"rotary_fraction": 0.5}),
    ],
)
def test_switches(tmp_path: Path, config: Config, changed: dict[str, object]) -> None:
    model, _ = read(tmp_path, config)
    assert {name: getattr(model, name) for name in changed} == changed


def test_numbers_of_parts_say_where_they_come_from(tmp_path: Path) -> None:
    model, _ = read(tmp_path, MIXTRAL | {"num_local_experts": 4}, "mine")
    assert model.sources["experts.num_experts"] == "mine.json: num_local_experts"
    assert model.sources["experts.top_k"] == "assumed: num_experts_per_tok is absent from mine.json"
    inner, _ = read(tmp_path, CLIP, "mine")
    assert inner.sources["tower.patches.patch_size"] == "mine.json: vision_config.patch_size"


@pytest.mark.parametrize(
    ("config", "key", "rule"),
    [
        (MIXTRAL | {"num_experts_per_tok": 9}, "num_experts_per_tok", "must be at most the 8 experts"),
        (QWEN3_MOE | {"mlp_only_layers": [1]}, "mlp_only_layers", "must be empty: such layers have no rule"),
        (DEEPSEEK_V3 | {"n_group": 7}, "n_group", "must divide the 256 experts"),
        (DEEPSEEK_V3 | {"moe_layer_freq": 2}, "moe_layer_freq", "must be 1: experts in every layer after"),
        (DEEPSEEK_V3 | {"topk_method": "best"}, "topk_method", "must be one of noaux_tc, greedy"),
        (NEMOTRON_H | {"hybrid_override_pattern": "M-*"}, "hybrid_override_pattern", "must have one of M * - E"),
        (NEMOTRON_H | {"mamba_head_dim": 0}, "mamba_head_dim", "must be a whole number from 1"),
        (MAMBA2 | {"num_heads": 81}, "num_heads", "times head_dim must be expand times hidden_size, 5120"),
        (VIT | {"patch_size": 15}, "patch_size", "must divide the image's edge of 224"),
        (CLIP | {"vision_config": {"patch_size": 0}}, "vision_config.patch_size", "must be a whole number from 1"),
        (CLIP | {"text_config": 3}, "text_config", "must be an object"),
        (MPT | {"attn_config": {"qk_ln": True}}, "attn_config.qk_ln", "must be false"),
        (T5_11B | {"feed_forward_proj": "gated-gellu"}, "feed_forward_proj", "must be one of relu, gated-gelu"),
        (BERT | {"is_decoder": True}, "is_decoder", "must be false"),
        (PHI3 | {"partial_rotary_factor": 2}, "partial_rotary_factor", "must be a number from 0 to 1"),
    ],
)
def test_what_is_wrong_is_told_at_its_key(tmp_path: Path, config: Config, key: str, rule: str) -> None:
    faults = faults_of(tmp_path, config)
    assert faults[key].rule.startswith(rule)


def test_ignored_keys_of_an_inner_object_are_told(tmp_path: Path) -> None:
    config = CLIP | {"vision_config": CLIP["vision_config"] | {"num_loops": 2}}
    assert any("vision_config.num_loops = 2 is ignored" in note for note in read(tmp_path, config)[1])
