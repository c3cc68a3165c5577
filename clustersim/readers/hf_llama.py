"""Configs of Llama and its dense descendants: Mistral, Qwen2, Qwen3, Phi-3, Gemma, Gemma-2, Gemma-3."""

from __future__ import annotations

from clustersim.readers.hf_fields import Fields, count, heads, nearest_divisor, window
from clustersim.readers.json_object import JsonObject

__all__ = ["biases", "gated", "gemma", "gemma2", "gemma3_text", "llama", "mistral", "phi3", "qwen2", "qwen3"]


def gated(
    config: JsonObject,
    *,
    max_seq_len: int,
    num_kv_heads: int | None = None,
    head_dim: int | None = None,
    tied: bool = False,
) -> Fields:
    """What Llama and its descendants share; the arguments are the defaults of absent keys, None for the derived one."""
    hidden = count(config, "hidden", "hidden_size")
    if head_dim is None and config.values.get("head_dim") is None:
        num_heads, head_dim = heads(config, hidden, "num_attention_heads")
    else:
        num_heads = count(config, "num_heads", "num_attention_heads")
    # A key that is there and null means one key head per query head; only an absent key takes the class's default.
    derived = num_kv_heads is None or "num_key_value_heads" in config.values
    kv_heads = count(config, "num_kv_heads", "num_key_value_heads", default=num_heads if derived else num_kv_heads)
    if num_heads and kv_heads and num_heads % kv_heads:
        rule = f"must divide the {num_heads} attention heads"
        config.fault("num_key_value_heads", rule, nearest=nearest_divisor(num_heads, kv_heads))
    return {
        "num_layers": count(config, "num_layers", "num_hidden_layers"),
        "hidden": hidden,
        "num_heads": num_heads,
        "num_kv_heads": kv_heads,
        "head_dim": count(config, "head_dim", "head_dim", default=head_dim),
        "ffn_hidden": count(config, "ffn_hidden", "intermediate_size"),
        "gated_mlp": True,
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "max_position_embeddings", default=max_seq_len),
        "norm": "rmsnorm",
        "positions": "rope",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=tied),
    }


def biases(config: JsonObject, *, default: bool = False) -> Fields:
    """``attention_bias``, which is on all four matrices of attention."""
    bias = config.flag("qkv_bias", "attention_bias", default=default)
    return {"qkv_bias": bias, "attention_output_bias": bias}


def llama(config: JsonObject) -> Fields:
    """Llama 1 to 3."""
    mlp_bias = config.flag("mlp_bias", "mlp_bias", default=False)
    return gated(config, max_seq_len=2048) | biases(config) | {"mlp_bias": mlp_bias}


def mistral(config: JsonObject) -> Fields:
    """Mistral and Mistral NeMo."""
    fields = gated(config, max_seq_len=131_072, num_kv_heads=8)
    return fields | {"window": window(config, fields["num_layers"], fields["max_seq_len"], default=4096)}


def qwen2(config: JsonObject) -> Fields:
    """Qwen1.5, Qwen2 and Qwen2.5."""
    fields = gated(config, max_seq_len=32_768, num_kv_heads=32) | {"qkv_bias": True}
    return fields | {"window": _switched_window(config, fields)}


def qwen3(config: JsonObject) -> Fields:
    """Qwen3."""
    fields = gated(config, max_seq_len=32_768, num_kv_heads=32, head_dim=128) | biases(config) | {"qk_norm": True}
    return fields | {"window": _switched_window(config, fields)}


def phi3(config: JsonObject) -> Fields:
    """Phi-3 and Phi-4; its q, k, v and its gate and up matrices are fused in the checkpoint."""
    fields = gated(config, max_seq_len=4096)
    fields["rotary_fraction"] = config.number("rotary_fraction", "partial_rotary_factor", low=0, high=1, default=1.0)
    return fields | {"window": window(config, fields["num_layers"], fields["max_seq_len"])}


def gemma(config: JsonObject) -> Fields:
    """Gemma."""
    return gated(config, max_seq_len=8192, head_dim=256, tied=True) | biases(config)


def gemma2(config: JsonObject) -> Fields:
    """Gemma-2: four norms a layer, every second layer attends to the whole sequence."""
    fields = gated(config, max_seq_len=8192, num_kv_heads=4, head_dim=256, tied=True) | biases(config)
    layers, longest = fields["num_layers"], fields["max_seq_len"]
    return fields | {"post_norms": True, "window": window(config, layers, longest, default=4096, full_every=2)}


def gemma3_text(config: JsonObject) -> Fields:
    """The language model of Gemma-3: norms on queries and keys too, every sixth layer attends to the whole sequence."""
    fields = gated(config, max_seq_len=131_072, num_kv_heads=4, head_dim=256, tied=True) | biases(config)
    every = count(config, "window.full_every", "sliding_window_pattern", default=6)
    layers, longest = fields["num_layers"], fields["max_seq_len"]
    looked = window(config, layers, longest, default=4096, full_every=every)
    return fields | {"post_norms": True, "qk_norm": True, "window": looked}


def _switched_window(config: JsonObject, fields: Fields) -> object:
    """A window that ``use_sliding_window`` turns on, from layer ``max_window_layers`` on."""
    layers, longest = fields["num_layers"], fields["max_seq_len"]
    asked = config.values.get("use_sliding_window") is not None or config.values.get("sliding_window") is not None
    if not (asked and config.flag("window", "use_sliding_window", default=False)):
        for key in ("sliding_window", "max_window_layers", "layer_types"):
            config.take(key)
        return None
    first = count(config, "window.first_full", "max_window_layers", default=28)
    return window(config, layers, longest, default=4096, first_full=first)
