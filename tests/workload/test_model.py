"""Parameter counts against explicit lists of tensors, named as the checkpoints of each architecture name them."""

from dataclasses import replace
from math import prod

import pytest

from clustersim.workload.model import Model
from clustersim.workload.model_check import LARGEST

Tensors = dict[str, tuple[int, ...]]

GPT2 = Model(
    name="tiny-gpt2",
    num_layers=3,
    hidden=12,
    num_heads=4,
    num_kv_heads=4,
    head_dim=3,
    ffn_hidden=40,
    gated_mlp=False,
    vocab=17,
    max_seq_len=11,
    norm="layernorm",
    positions="learned",
    tied_embeddings=True,
    qkv_bias=True,
    attention_output_bias=True,
    mlp_bias=True,
    norm_bias=True,
)
LLAMA = Model(
    name="tiny-llama",
    num_layers=3,
    hidden=12,
    num_heads=6,
    num_kv_heads=2,
    head_dim=5,
    ffn_hidden=29,
    gated_mlp=True,
    vocab=17,
    max_seq_len=11,
    norm="rmsnorm",
    positions="rope",
    tied_embeddings=False,
)
QWEN2 = replace(LLAMA, name="tiny-qwen2", qkv_bias=True, tied_embeddings=True)
QWEN3 = replace(LLAMA, name="tiny-qwen3", qk_norm=True)
BLOOM = replace(GPT2, name="tiny-bloom", positions="alibi", embedding_norm=True)
NEOX = replace(GPT2, name="tiny-neox", positions="rope", tied_embeddings=False, parallel_residual=True)
OPT = replace(GPT2, name="tiny-opt", extra_positions=2)
OPT_PROJECTED = replace(OPT, name="tiny-opt-350m", embedding_dim=7, final_norm=False)


def norm(name: str, width: int) -> Tensors:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def gpt2_tensors() -> Tensors:
    tensors: Tensors = {"wte.weight": (17, 12), "wpe.weight": (11, 12), **norm("ln_f", 12)}
    for layer in range(3):
        tensors |= {
            f"h.{layer}.attn.c_attn.weight": (12, 36),
            f"h.{layer}.attn.c_attn.bias": (36,),
            f"h.{layer}.attn.c_proj.weight": (12, 12),
            f"h.{layer}.attn.c_proj.bias": (12,),
            f"h.{layer}.mlp.c_fc.weight": (12, 40),
            f"h.{layer}.mlp.c_fc.bias": (40,),
            f"h.{layer}.mlp.c_proj.weight": (40, 12),
            f"h.{layer}.mlp.c_proj.bias": (12,),
            **norm(f"h.{layer}.ln_1", 12),
            **norm(f"h.{layer}.ln_2", 12),
        }
    return tensors


def llama_tensors() -> Tensors:
    tensors: Tensors = {"embed_tokens.weight": (17, 12), "norm.weight": (12,), "lm_head.weight": (17, 12)}
    for layer in range(3):
        tensors |= {
            f"layers.{layer}.self_attn.q_proj.weight": (30, 12),
            f"layers.{layer}.self_attn.k_proj.weight": (10, 12),
            f"layers.{layer}.self_attn.v_proj.weight": (10, 12),
            f"layers.{layer}.self_attn.o_proj.weight": (12, 30),
            f"layers.{layer}.mlp.gate_proj.weight": (29, 12),
            f"layers.{layer}.mlp.up_proj.weight": (29, 12),
            f"layers.{layer}.mlp.down_proj.weight": (12, 29),
            f"layers.{layer}.input_layernorm.weight": (12,),
            f"layers.{layer}.post_attention_layernorm.weight": (12,),
        }
    return tensors


def qwen2_tensors() -> Tensors:
    tensors = llama_tensors()
    del tensors["lm_head.weight"]
    for layer in range(3):
        tensors |= {
            f"layers.{layer}.self_attn.{m}_proj.bias": (rows,) for m, rows in zip("qkv", (30, 10, 10), strict=True)
        }
    return tensors


def qwen3_tensors() -> Tensors:
    return llama_tensors() | {f"layers.{i}.self_attn.{m}_norm.weight": (5,) for i in range(3) for m in "qk"}


def bloom_tensors() -> Tensors:
    tensors = gpt2_tensors() | norm("word_embeddings_layernorm", 12)
    del tensors["wpe.weight"]
    return tensors


def neox_tensors() -> Tensors:
    tensors = gpt2_tensors() | {"embed_out.weight": (17, 12)}
    del tensors["wpe.weight"]
    return tensors


def opt_tensors() -> Tensors:
    return gpt2_tensors() | {"wpe.weight": (13, 12)}


def opt_projected_tensors() -> Tensors:
    tensors = opt_tensors() | {"wte.weight": (17, 7), "project_in.weight": (12, 7), "project_out.weight": (7, 12)}
    del tensors["ln_f.weight"], tensors["ln_f.bias"]
    return tensors


CASES = [
    (GPT2, gpt2_tensors()),
    (LLAMA, llama_tensors()),
    (QWEN2, qwen2_tensors()),
    (QWEN3, qwen3_tensors()),
    (BLOOM, bloom_tensors()),
    (NEOX, neox_tensors()),
    (OPT, opt_tensors()),
    (OPT_PROJECTED, opt_projected_tensors()),
]


@pytest.mark.parametrize(("model", "tensors"), CASES, ids=[model.name for model, _ in CASES])
class TestAgainstTensors:
    def test_num_parameters(self, model: Model, tensors: Tensors) -> None:
        assert model.num_parameters == sum(prod(shape) for shape in tensors.values())
        assert model.num_active_parameters == model.num_parameters

    def test_parts_of_a_layer(self, model: Model, tensors: Tensors) -> None:
        parts = {"attention": 0, "mlp": 0, "norms": 0}
        for name, shape in tensors.items():
            if ".0." in name:
                is_norm = any(word in name for word in ("ln_", "norm"))
                part = "norms" if is_norm else "mlp" if "mlp" in name else "attention"
                parts[part] += prod(shape)
        assert model.parameters_per_layer == parts

    def test_matmul_parameters(self, model: Model, tensors: Tensors) -> None:
        look_ups = ("wte.weight", "wpe.weight", "embed_tokens.weight")
        matrices = [prod(shape) for name, shape in tensors.items() if len(shape) == 2 and name not in look_ups]
        head = model.vocab * (model.embedding_dim or model.hidden)
        assert model.matmul_parameters == sum(matrices) + (head if model.tied_embeddings else 0)


def test_tying_saves_the_head_but_not_its_work() -> None:
    untied = replace(GPT2, tied_embeddings=False)
    assert untied.num_parameters - GPT2.num_parameters == 17 * 12
    assert untied.matmul_parameters == GPT2.matmul_parameters


def test_parallel_residual_changes_no_parameter() -> None:
    assert replace(NEOX, parallel_residual=False).num_parameters == NEOX.num_parameters


def test_parts_of_the_model() -> None:
    assert OPT_PROJECTED.parameters_by_part == {
        "embedding": 17 * 7,
        "positions": 13 * 12,
        "projections": 2 * 7 * 12,
        "embedding_norm": 0,
        "layers": 3 * sum(OPT.parameters_per_layer.values()),
        "final_norm": 0,
        "head": 0,
    }


def test_shapes_of_the_fused_matrices() -> None:
    assert LLAMA.layer_matrices == {
        "qkv": (12, 50),
        "attention_out": (30, 12),
        "mlp_in": (12, 58),
        "mlp_out": (29, 12),
    }
    assert LLAMA.outer_matrices == {"head": (12, 17)}
    assert OPT_PROJECTED.outer_matrices == {"project_in": (7, 12), "project_out": (12, 7), "head": (7, 17)}


@pytest.mark.parametrize("field", sorted(LARGEST))
@pytest.mark.parametrize("value", [0, -1, 10**9 * 2, 1.5, float("nan"), float("inf"), True, "8"])
def test_a_count_is_a_whole_number_in_range(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{field}: .* must be a whole number from 1 to {LARGEST[field]}$"):
        replace(LLAMA, **{field: value})


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (LLAMA, {"num_kv_heads": 4}, "num_kv_heads: 4 must divide the 6 query heads"),
        (LLAMA, {"norm_bias": True}, "norm_bias: True must be False for rmsnorm"),
        (LLAMA, {"norm": "batchnorm"}, "norm: 'batchnorm' must be one of layernorm, rmsnorm"),
        (LLAMA, {"positions": "sinusoid"}, "positions: 'sinusoid' must be one of rope, learned, alibi"),
        (LLAMA, {"extra_positions": 2}, "extra_positions: 2 must be 0, or positive with learned positions"),
        (GPT2, {"extra_positions": -2}, "extra_positions: -2 must be 0, or positive with learned positions"),
    ],
)
def test_fields_that_contradict_each_other(model: Model, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        replace(model, **change)


def test_a_model_is_its_shape_and_not_its_sources() -> None:
    sourced = replace(LLAMA, sources={"hidden": "assumed"})
    assert sourced == LLAMA
    assert hash(sourced) == hash(LLAMA)
