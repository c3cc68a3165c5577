"""Configs of GPT-2 and its descendants: GPT-NeoX, OPT, BLOOM, Falcon, MPT."""

from __future__ import annotations

from clustersim.readers.hf_fields import Fields, classic, count, heads
from clustersim.readers.json_object import JsonObject

__all__ = ["bloom", "falcon", "gpt2", "gpt_neox", "mpt", "opt"]


def gpt2(config: JsonObject) -> Fields:
    """GPT-2."""
    hidden = count(config, "hidden", "n_embd", "hidden_size")
    num_heads, head_dim = heads(config, hidden, "n_head", "num_attention_heads")
    if config.values.get("add_cross_attention"):
        config.fault("add_cross_attention", "must be false: an encoder's shape is not in this file", nearest=False)
    return classic(num_heads, head_dim) | {
        "num_layers": count(config, "num_layers", "n_layer", "num_hidden_layers"),
        "hidden": hidden,
        "ffn_hidden": count(config, "ffn_hidden", "n_inner", default=4 * hidden),
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "n_positions", "max_position_embeddings", default=1024),
        "positions": "learned",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=True),
    }


def opt(config: JsonObject) -> Fields:
    """OPT."""
    hidden = count(config, "hidden", "hidden_size", "d_model")
    num_heads, head_dim = heads(config, hidden, "num_attention_heads")
    width = count(config, "embedding_dim", "word_embed_proj_dim", default=hidden)
    before = config.flag("final_norm", "do_layer_norm_before", default=True)
    biased = config.flag("qkv_bias", "enable_bias", default=True)
    removed = "_remove_final_layer_norm" in config.values and config.flag(
        "final_norm", "_remove_final_layer_norm", default=False
    )
    if config.values.get("layer_norm_elementwise_affine") is False:
        rule = "must be true: norms without weights are not modelled"
        config.fault("layer_norm_elementwise_affine", rule, nearest=True)
    return classic(num_heads, head_dim) | {
        "num_layers": count(config, "num_layers", "num_hidden_layers"),
        "hidden": hidden,
        "ffn_hidden": count(config, "ffn_hidden", "ffn_dim"),
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "max_position_embeddings", default=2048),
        "positions": "learned",
        "extra_positions": 2,
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=True),
        "embedding_dim": None if width == hidden else width,
        "final_norm": before and not removed,
        "qkv_bias": biased,
        "attention_output_bias": biased,
        "mlp_bias": biased,
    }


def bloom(config: JsonObject) -> Fields:
    """BLOOM."""
    hidden = count(config, "hidden", "n_embed", "hidden_size")
    num_heads, head_dim = heads(config, hidden, "n_head", "num_attention_heads")
    return classic(num_heads, head_dim) | {
        "num_layers": count(config, "num_layers", "n_layer", "num_hidden_layers"),
        "hidden": hidden,
        "ffn_hidden": 4 * hidden,
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "seq_length", default=2048),
        "positions": "alibi",
        "embedding_norm": True,
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=True),
    }


def gpt_neox(config: JsonObject) -> Fields:
    """GPT-NeoX and Pythia."""
    hidden = count(config, "hidden", "hidden_size")
    num_heads, head_dim = heads(config, hidden, "num_attention_heads")
    biased = config.flag("qkv_bias", "attention_bias", default=True)
    return classic(num_heads, head_dim) | {
        "num_layers": count(config, "num_layers", "num_hidden_layers"),
        "hidden": hidden,
        "ffn_hidden": count(config, "ffn_hidden", "intermediate_size"),
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "max_position_embeddings", default=2048),
        "positions": "rope",
        "rotary_fraction": config.number("rotary_fraction", "rotary_pct", low=0, high=1, default=0.25),
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=False),
        "parallel_residual": config.flag("parallel_residual", "use_parallel_residual", default=True),
        "qkv_bias": biased,
        "attention_output_bias": biased,
    }


def falcon(config: JsonObject) -> Fields:
    """Falcon; ``multi_query`` is of no effect with ``new_decoder_architecture``."""
    hidden = count(config, "hidden", "hidden_size", "n_embed")
    num_heads, head_dim = heads(config, hidden, "num_attention_heads", "n_head")
    new = config.flag("parallel_residual", "new_decoder_architecture", default=False)
    one = config.flag("num_kv_heads", "multi_query", default=True)
    parallel = config.flag("parallel_residual", "parallel_attn", default=True) or new
    biased = config.flag("mlp_bias", "bias", default=False)
    num_kv_heads = 1 if one else num_heads
    num_norms = 1
    if new:
        num_kv_heads = count(config, "num_kv_heads", "num_kv_heads", "n_head_kv", default=num_heads)
        num_norms = count(config, "shared_norm", "num_ln_in_parallel_attn", default=2)
    else:
        config.take("num_kv_heads")
    return classic(num_heads, head_dim) | {
        "num_layers": count(config, "num_layers", "num_hidden_layers", "n_layer"),
        "hidden": hidden,
        "num_kv_heads": num_kv_heads,
        "ffn_hidden": count(config, "ffn_hidden", "ffn_hidden_size", default=4 * hidden),
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "max_position_embeddings", default=2048),
        "positions": "alibi" if config.flag("positions", "alibi", default=False) else "rope",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=True),
        "parallel_residual": parallel,
        "shared_norm": parallel and num_norms == 1,
        "qkv_bias": biased,
        "attention_output_bias": biased,
        "mlp_bias": biased,
    }


def mpt(config: JsonObject) -> Fields:
    """MPT; ALiBi goes before a learned position table, and ``no_bias`` takes the biases of norms too."""
    hidden = count(config, "hidden", "d_model")
    num_heads, head_dim = heads(config, hidden, "n_heads")
    attention = config.inner("attn_config")
    kinds = ("multihead_attention", "multiquery_attention", "grouped_query_attention")
    kind = attention.word("num_kv_heads", "attn_type", words=kinds, default=kinds[0])
    num_kv_heads = {kinds[0]: num_heads, kinds[1]: 1}.get(kind, 0)
    if kind == kinds[2]:
        num_kv_heads = count(attention, "num_kv_heads", "kv_n_heads")
    if attention.values.get("qk_ln"):
        attention.fault("qk_ln", "must be false: a norm over all heads together is not modelled", nearest=False)
    alibi = attention.flag("positions", "alibi", default=True)
    config.absorb("attn_config", attention)
    learned = config.flag("positions", "learned_pos_emb", default=True)
    biased = not config.flag("mlp_bias", "no_bias", default=True)
    norms = ("low_precision_layernorm", "layernorm", "low_precision_rmsnorm", "rmsnorm")
    norm = config.word("norm", "norm_type", words=norms, default=norms[0]).removeprefix("low_precision_")
    return classic(num_heads, head_dim) | {
        "num_layers": count(config, "num_layers", "n_layers"),
        "hidden": hidden,
        "num_kv_heads": num_kv_heads,
        "ffn_hidden": hidden * count(config, "ffn_hidden", "expansion_ratio", default=4),
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "max_seq_len", default=2048),
        "norm": norm,
        "positions": "alibi" if alibi else "learned" if learned else "none",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=True),
        "qkv_bias": biased,
        "attention_output_bias": biased,
        "mlp_bias": biased,
        "norm_bias": biased and norm == "layernorm",
    }
