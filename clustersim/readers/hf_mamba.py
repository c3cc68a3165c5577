"""Configs of state-space models: Mamba, Mamba-2, and the hybrid Nemotron-H."""

from __future__ import annotations

from clustersim.readers.hf_fields import Fields, count, heads, part
from clustersim.readers.json_object import JsonObject
from clustersim.workload.model_check import LARGEST
from clustersim.workload.shape.mamba import Mamba
from clustersim.workload.sublayer import LAYOUT

__all__ = ["mamba", "mamba2", "nemotron_h"]


def _alone(config: JsonObject, *, tied: bool) -> Fields:
    """Layers of a mixer alone; no length is too long for one."""
    return {
        "num_layers": count(config, "num_layers", "num_hidden_layers", "n_layer"),
        "hidden": count(config, "hidden", "hidden_size", "d_model"),
        "num_heads": 0,
        "num_kv_heads": 0,
        "head_dim": 0,
        "ffn_hidden": 0,
        "gated_mlp": False,
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": LARGEST["max_seq_len"],
        "norm": "rmsnorm",
        "positions": "none",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=tied),
    }


def mamba(config: JsonObject) -> Fields:
    """Mamba."""
    fields = _alone(config, tied=True)
    inner = count(config, "mamba.expand", "expand", default=2) * fields["hidden"]
    derived = -(-fields["hidden"] // 16)
    if config.values.get("time_step_rank") == "auto":
        config.take("time_step_rank")
        rank = derived
    else:
        rank = count(config, "mamba.dt_rank", "time_step_rank", default=derived)
    mixer = part(
        config,
        "mamba",
        Mamba,
        version=1,
        inner=count(config, "mamba.inner", "intermediate_size", default=inner),
        state=count(config, "mamba.state", "state_size", default=16),
        conv=count(config, "mamba.conv", "conv_kernel", default=4),
        dt_rank=rank,
        conv_bias=config.flag("mamba.conv_bias", "use_conv_bias", default=True),
        bias=config.flag("mamba.bias", "use_bias", default=False),
    )
    return fields | {"mamba": mixer}


def mamba2(config: JsonObject) -> Fields:
    """Mamba-2."""
    fields = _alone(config, tied=False)
    inner = count(config, "mamba.expand", "expand", default=2) * fields["hidden"]
    num_heads = count(config, "mamba.num_heads", "num_heads", default=128)
    head_dim = count(config, "mamba.head_dim", "head_dim", default=64)
    if inner and num_heads * head_dim not in (0, inner):
        config.fault(
            "num_heads", f"times head_dim must be expand times hidden_size, {inner}", nearest=inner // head_dim
        )
    mixer = part(
        config,
        "mamba",
        Mamba,
        version=2,
        inner=inner,
        state=count(config, "mamba.state", "state_size", default=128),
        conv=count(config, "mamba.conv", "conv_kernel", default=4),
        head_dim=head_dim,
        groups=count(config, "mamba.groups", "n_groups", default=8),
        chunk=count(config, "mamba.chunk", "chunk_size", default=256),
        conv_bias=config.flag("mamba.conv_bias", "use_conv_bias", default=True),
        bias=config.flag("mamba.bias", "use_bias", default=False),
    )
    return fields | {"mamba": mixer}


def nemotron_h(config: JsonObject) -> Fields:
    """Nemotron-H: each layer is one of Mamba-2, attention and an MLP, without positions."""
    hidden = count(config, "hidden", "hidden_size")
    given = next((key for key in ("head_dim", "attention_head_dim") if config.values.get(key) is not None), None)
    if given is None:
        num_heads, head_dim = heads(config, hidden, "num_attention_heads")
    else:
        num_heads = count(config, "num_heads", "num_attention_heads")
        head_dim = count(config, "head_dim", given)
    layout = config.take("hybrid_override_pattern")
    num_layers = count(config, "num_layers", "num_hidden_layers")
    if not isinstance(layout, str) or set(layout) - set(LAYOUT) or len(layout) != num_layers:
        rule = f"must have one of {' '.join(LAYOUT)} for each of the {num_layers} layers"
        config.fault("hybrid_override_pattern", rule)
        layout = ""
    if "E" in layout:
        config.fault("hybrid_override_pattern", "must not have E: experts are not read from this architecture")
    config.origins["layout"] = f"{config.path.name}: hybrid_override_pattern"
    mixer_bias = config.flag("mamba.bias", "use_bias", default=False)
    mixer_heads = count(config, "mamba.num_heads", "mamba_num_heads")
    mixer_head_dim = count(config, "mamba.head_dim", "mamba_head_dim")
    for key in ("expand", "mamba_proj_bias"):  # the mixer's width is heads times width, its biases are use_bias
        config.take(key)
    bias = config.flag("qkv_bias", "attention_bias", default=False)
    mixer = part(
        config,
        "mamba",
        Mamba,
        version=2,
        inner=mixer_heads * mixer_head_dim,
        state=count(config, "mamba.state", "ssm_state_size"),
        conv=count(config, "mamba.conv", "conv_kernel", default=4),
        head_dim=mixer_head_dim,
        groups=count(config, "mamba.groups", "n_groups"),
        chunk=count(config, "mamba.chunk", "chunk_size", default=256),
        conv_bias=config.flag("mamba.conv_bias", "use_conv_bias", default=True),
        bias=mixer_bias,
    )
    return {
        "num_layers": num_layers,
        "hidden": hidden,
        "num_heads": num_heads,
        "num_kv_heads": count(config, "num_kv_heads", "num_key_value_heads", default=num_heads),
        "head_dim": head_dim,
        "ffn_hidden": count(config, "ffn_hidden", "intermediate_size"),
        "gated_mlp": False,
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "max_position_embeddings", default=4096),
        "norm": "rmsnorm",
        "positions": "none",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=False),
        "qkv_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": config.flag("mlp_bias", "mlp_bias", default=False),
        "layout": layout,
        "mamba": mixer,
    }
