"""Configs of mixtures of experts: Mixtral, Qwen2-MoE, Qwen3-MoE, gpt-oss, DeepSeek-V2 and -V3."""

from __future__ import annotations

from clustersim.readers.hf_fields import Fields, count, part, whole, window
from clustersim.readers.hf_llama import biases, gated
from clustersim.readers.json_object import JsonObject
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shape.latent_attention import LatentAttention

__all__ = ["deepseek_v2", "deepseek_v3", "gpt_oss", "mixtral", "qwen2_moe", "qwen3_moe"]


def _without_mlp(config: JsonObject, fields: Fields) -> Fields:
    """No layer has an MLP beside its experts, whatever ``intermediate_size`` is for."""
    config.origins.pop("ffn_hidden", None)
    return fields | {"ffn_hidden": 0}


def mixtral(config: JsonObject) -> Fields:
    """Mixtral: experts in every layer; ``intermediate_size`` is that of one."""
    fields = gated(config, max_seq_len=131_072, num_kv_heads=8)
    experts = part(
        config,
        "experts",
        Experts,
        num_experts=count(config, "experts.num_experts", "num_local_experts", default=8),
        top_k=count(config, "experts.top_k", "num_experts_per_tok", default=2),
        ffn_hidden=count(config, "experts.ffn_hidden", "intermediate_size"),
    )
    looked = window(config, fields["num_layers"], fields["max_seq_len"])
    return _without_mlp(config, fields) | {"experts": experts, "window": looked}


def qwen2_moe(config: JsonObject) -> Fields:
    """Qwen1.5-MoE and Qwen2-MoE: one wide shared expert behind a gate of its own."""
    fields = gated(config, max_seq_len=32_768, num_kv_heads=16) | {"qkv_bias": True}
    shared = count(config, "experts.shared_ffn_hidden", "shared_expert_intermediate_size", default=5632)
    return _sparse_steps(config, fields, shared=shared, default_experts=60, default_top_k=4, default_ffn=1408)


def qwen3_moe(config: JsonObject) -> Fields:
    """Qwen3-MoE."""
    fields = gated(config, max_seq_len=32_768, num_kv_heads=4) | biases(config) | {"qk_norm": True}
    return _sparse_steps(config, fields, shared=0, default_experts=128, default_top_k=8, default_ffn=768)


def _sparse_steps(
    config: JsonObject, fields: Fields, *, shared: int, default_experts: int, default_top_k: int, default_ffn: int
) -> Fields:
    """Experts in every ``decoder_sparse_step``-th layer; the others have an MLP of ``intermediate_size``."""
    if config.take("mlp_only_layers"):
        config.fault("mlp_only_layers", "must be empty: such layers have no rule", nearest=[])
    if config.take("use_sliding_window"):
        config.fault("use_sliding_window", "must be false with experts", nearest=False)
    for key in ("sliding_window", "max_window_layers", "layer_types"):
        config.take(key)
    every = count(config, "experts.every", "decoder_sparse_step", default=1)
    experts = part(
        config,
        "experts",
        Experts,
        num_experts=count(config, "experts.num_experts", "num_experts", "num_local_experts", default=default_experts),
        top_k=count(config, "experts.top_k", "num_experts_per_tok", default=default_top_k),
        ffn_hidden=count(config, "experts.ffn_hidden", "moe_intermediate_size", default=default_ffn),
        shared_ffn_hidden=shared,
        num_shared=int(shared > 0),
        shared_gate=shared > 0,
        every=every,
    )
    return (_without_mlp(config, fields) if every == 1 else fields) | {"experts": experts}


def gpt_oss(config: JsonObject) -> Fields:
    """gpt-oss: biases throughout, sinks in the softmax, every second layer attends to the whole sequence."""
    fields = gated(config, max_seq_len=131_072, num_kv_heads=8, head_dim=64) | biases(config, default=True)
    experts = part(
        config,
        "experts",
        Experts,
        num_experts=count(config, "experts.num_experts", "num_local_experts", "num_experts", default=128),
        top_k=count(config, "experts.top_k", "num_experts_per_tok", "experts_per_token", default=4),
        ffn_hidden=count(config, "experts.ffn_hidden", "intermediate_size"),
        bias=True,
        clamped=True,
        router_bias=True,
    )
    layers, longest = fields["num_layers"], fields["max_seq_len"]
    looked = window(config, layers, longest, default=128, full_every=2)
    return _without_mlp(config, fields) | {"attention_sinks": True, "experts": experts, "window": looked}


def deepseek_v2(config: JsonObject) -> Fields:
    """DeepSeek-V2 and V2-Lite."""
    return _deepseek(config, router_bias=False)


def deepseek_v3(config: JsonObject) -> Fields:
    """DeepSeek-V3 and R1: a bias on the router's scores, and modules that predict further tokens."""
    methods = ("noaux_tc", "greedy", "group_limited_greedy")
    method = config.word("experts.router_bias", "topk_method", words=methods, default=methods[0])
    modules = whole(config, "mtp", "num_nextn_predict_layers")
    return _deepseek(config, router_bias=method == methods[0]) | {"mtp": modules}


def _deepseek(config: JsonObject, *, router_bias: bool) -> Fields:
    """Latent attention, a few dense layers first, then routed and shared experts of one width.

    ``num_key_value_heads`` is read by nothing: all heads share one latent vector.
    """
    config.take("num_key_value_heads")
    num_heads = count(config, "num_heads", "num_attention_heads")
    if config.values.get("moe_layer_freq", 1) != 1:
        config.fault("moe_layer_freq", "must be 1: experts in every layer after the first dense ones", nearest=1)
    config.take("moe_layer_freq")
    ffn = count(config, "experts.ffn_hidden", "moe_intermediate_size")
    num_shared = whole(config, "experts.num_shared", "n_shared_experts")
    first_dense = whole(config, "experts.first_dense", "first_k_dense_replace")
    fields = {
        "num_layers": count(config, "num_layers", "num_hidden_layers"),
        "hidden": count(config, "hidden", "hidden_size"),
        "num_heads": num_heads,
        "num_kv_heads": num_heads,
        "ffn_hidden": count(config, "ffn_hidden", "intermediate_size") if first_dense else 0,
        "gated_mlp": True,
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "max_position_embeddings"),
        "norm": "rmsnorm",
        "positions": "rope",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=False),
        **biases(config),
    }
    if not first_dense:
        config.take("intermediate_size")
    rank = None if config.take("q_lora_rank") is None else count(config, "latent.q_rank", "q_lora_rank")
    if "q_lora_rank" not in config.values:
        config.fault("q_lora_rank", "must be given; null where queries have no narrow vector")
    nope, rope = (
        count(config, "latent.nope_dim", "qk_nope_head_dim"),
        count(config, "latent.rope_dim", "qk_rope_head_dim"),
    )
    latent = part(
        config,
        "latent",
        LatentAttention,
        q_rank=rank,
        kv_rank=count(config, "latent.kv_rank", "kv_lora_rank"),
        nope_dim=nope,
        rope_dim=rope,
        value_dim=count(config, "latent.value_dim", "v_head_dim"),
    )
    groups = count(config, "experts.num_groups", "n_group", default=1)
    experts = part(
        config,
        "experts",
        Experts,
        num_experts=count(config, "experts.num_experts", "n_routed_experts"),
        top_k=count(config, "experts.top_k", "num_experts_per_tok"),
        ffn_hidden=ffn,
        num_shared=num_shared,
        shared_ffn_hidden=num_shared * ffn,
        first_dense=first_dense,
        router_bias=router_bias,
        num_groups=groups,
        top_groups=count(config, "experts.top_groups", "topk_group", default=groups),
    )
    return fields | {"head_dim": nope + rope, "latent": latent, "experts": experts}
