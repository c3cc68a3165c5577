"""Hugging Face ``config.json`` of a dense decoder -> :class:`clustersim.workload.model.Model`.

Key names and the values taken for absent keys are those of the configuration classes of the ``transformers`` library,
one function a ``model_type``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput, Fault
from clustersim.readers.hf_ignored import ignored_notes
from clustersim.readers.json_object import JsonObject, load_object
from clustersim.workload.model import LARGEST, Model

__all__ = ["detect", "read"]

Fields = dict[str, Any]


def detect(path: str | Path) -> bool:
    """Whether the file is a JSON object with a ``model_type`` or a list of ``architectures``."""
    try:
        values = load_object(path).values
    except BadInput:
        return False
    return isinstance(values.get("model_type"), str) or isinstance(values.get("architectures"), list)


def read(path: str | Path) -> tuple[Model, list[str]]:
    """Read a model's shape.

    Parameters
    ----------
    path : str or Path
        the ``config.json``; a model in ``NAME/config.json`` or ``NAME.json`` is called NAME

    Returns
    -------
    model : Model
    notes : list[str]
        defaults taken for absent keys, and keys that could change work or size and are not modelled

    Raises
    ------
    BadInput
        with every fault of the file: unreadable, unsupported ``model_type``, missing keys, values out of range
    """
    config = load_object(path)
    kind = config.values.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise BadInput([*config.faults, _unsupported(config, kind)])
    fields = ARCHITECTURES[kind](config)
    config.check()
    name = config.path.stem if config.path.stem != "config" else config.path.resolve().parent.name
    sources = dict.fromkeys(fields, f"architecture: {kind}") | config.origins
    model = Model(name=name, sources=sources, **fields)
    taken = ", ".join(f"{key} = {value}" for key, value in config.defaults.items())
    assumed = [f"absent keys take the defaults of {kind}: {taken}"] if taken else []
    return model, assumed + ignored_notes(config, kind, model)


def _unsupported(config: JsonObject, kind: object) -> Fault:
    supported = ", ".join(sorted(ARCHITECTURES))
    rule = f"is not yet supported; supported: {supported}" if kind else f"must be given, as one of: {supported}"
    folded = str(kind).lower().replace("-", "_")
    nearest = folded if folded in ARCHITECTURES else None
    return Fault(file=str(config.path), key="model_type", value=kind, rule=rule, nearest=nearest)


def _count(config: JsonObject, name: str, *keys: str, default: int | None = None) -> int:
    return config.count(name, *keys, largest=LARGEST[name], default=default)


def _heads(config: JsonObject, hidden: int, *keys: str) -> tuple[int, int]:
    """Number of heads, and h / a, which must be whole."""
    heads = _count(config, "num_heads", *keys)
    if heads and hidden % heads:
        key = next(k for k in keys if config.values.get(k) is not None)
        rule = f"must divide the hidden size of {hidden} where head_dim is absent"
        config.fault(key, rule, nearest=_nearest_divisor(hidden, heads))
    return heads, hidden // heads if heads else 0


def _nearest_divisor(number: int, value: int) -> int:
    return min((d for d in range(1, number + 1) if number % d == 0), key=lambda d: abs(d - value))


def _gated(
    config: JsonObject, *, max_seq_len: int, num_kv_heads: int | None = None, head_dim: int | None = None
) -> Fields:
    """What Llama and its descendants share; the arguments are the defaults of absent keys, None for the derived one."""
    hidden = _count(config, "hidden", "hidden_size")
    if head_dim is None and config.values.get("head_dim") is None:
        heads, head_dim = _heads(config, hidden, "num_attention_heads")
    else:
        heads = _count(config, "num_heads", "num_attention_heads")
    # A key that is there and null means one key head per query head; only an absent key takes the class's default.
    derived = num_kv_heads is None or "num_key_value_heads" in config.values
    kv_heads = _count(config, "num_kv_heads", "num_key_value_heads", default=heads if derived else num_kv_heads)
    if heads and kv_heads and heads % kv_heads:
        rule = f"must divide the {heads} attention heads"
        config.fault("num_key_value_heads", rule, nearest=_nearest_divisor(heads, kv_heads))
    return {
        "num_layers": _count(config, "num_layers", "num_hidden_layers"),
        "hidden": hidden,
        "num_heads": heads,
        "num_kv_heads": kv_heads,
        "head_dim": _count(config, "head_dim", "head_dim", default=head_dim),
        "ffn_hidden": _count(config, "ffn_hidden", "intermediate_size"),
        "gated_mlp": True,
        "vocab": _count(config, "vocab", "vocab_size"),
        "max_seq_len": _count(config, "max_seq_len", "max_position_embeddings", default=max_seq_len),
        "norm": "rmsnorm",
        "positions": "rope",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=False),
    }


def _llama(config: JsonObject) -> Fields:
    bias = config.flag("qkv_bias", "attention_bias", default=False)
    mlp_bias = config.flag("mlp_bias", "mlp_bias", default=False)
    return _gated(config, max_seq_len=2048) | {
        "qkv_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": mlp_bias,
    }


def _mistral(config: JsonObject) -> Fields:
    return _gated(config, max_seq_len=131_072, num_kv_heads=8)


def _qwen2(config: JsonObject) -> Fields:
    return _gated(config, max_seq_len=32_768, num_kv_heads=32) | {"qkv_bias": True}


def _qwen3(config: JsonObject) -> Fields:
    bias = config.flag("qkv_bias", "attention_bias", default=False)
    return _gated(config, max_seq_len=32_768, num_kv_heads=32, head_dim=128) | {
        "qkv_bias": bias,
        "attention_output_bias": bias,
        "qk_norm": True,
    }


def _classic(heads: int, head_dim: int) -> Fields:
    """What GPT-2 and its descendants share: as many key as query heads, layer norms, a plain MLP, biases."""
    return {
        "num_heads": heads,
        "num_kv_heads": heads,
        "head_dim": head_dim,
        "gated_mlp": False,
        "norm": "layernorm",
        "qkv_bias": True,
        "attention_output_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
    }


def _gpt2(config: JsonObject) -> Fields:
    hidden = _count(config, "hidden", "n_embd", "hidden_size")
    heads, head_dim = _heads(config, hidden, "n_head", "num_attention_heads")
    if config.values.get("add_cross_attention"):
        config.fault("add_cross_attention", "must be false: cross-attention is not modelled", nearest=False)
    return _classic(heads, head_dim) | {
        "num_layers": _count(config, "num_layers", "n_layer", "num_hidden_layers"),
        "hidden": hidden,
        "ffn_hidden": _count(config, "ffn_hidden", "n_inner", default=4 * hidden),
        "vocab": _count(config, "vocab", "vocab_size"),
        "max_seq_len": _count(config, "max_seq_len", "n_positions", "max_position_embeddings", default=1024),
        "positions": "learned",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=True),
    }


def _opt(config: JsonObject) -> Fields:
    hidden = _count(config, "hidden", "hidden_size", "d_model")
    heads, head_dim = _heads(config, hidden, "num_attention_heads")
    width = _count(config, "embedding_dim", "word_embed_proj_dim", default=hidden)
    before = config.flag("final_norm", "do_layer_norm_before", default=True)
    biased = config.flag("qkv_bias", "enable_bias", default=True)
    removed = "_remove_final_layer_norm" in config.values and config.flag(
        "final_norm", "_remove_final_layer_norm", default=False
    )
    if config.values.get("layer_norm_elementwise_affine") is False:
        rule = "must be true: norms without weights are not modelled"
        config.fault("layer_norm_elementwise_affine", rule, nearest=True)
    return _classic(heads, head_dim) | {
        "num_layers": _count(config, "num_layers", "num_hidden_layers"),
        "hidden": hidden,
        "ffn_hidden": _count(config, "ffn_hidden", "ffn_dim"),
        "vocab": _count(config, "vocab", "vocab_size"),
        "max_seq_len": _count(config, "max_seq_len", "max_position_embeddings", default=2048),
        "positions": "learned",
        "extra_positions": 2,
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=True),
        "embedding_dim": None if width == hidden else width,
        "final_norm": before and not removed,
        "qkv_bias": biased,
        "attention_output_bias": biased,
        "mlp_bias": biased,
    }


def _bloom(config: JsonObject) -> Fields:
    hidden = _count(config, "hidden", "n_embed", "hidden_size")
    heads, head_dim = _heads(config, hidden, "n_head", "num_attention_heads")
    return _classic(heads, head_dim) | {
        "num_layers": _count(config, "num_layers", "n_layer", "num_hidden_layers"),
        "hidden": hidden,
        "ffn_hidden": 4 * hidden,
        "vocab": _count(config, "vocab", "vocab_size"),
        "max_seq_len": _count(config, "max_seq_len", "seq_length", default=2048),
        "positions": "alibi",
        "embedding_norm": True,
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=True),
    }


def _gpt_neox(config: JsonObject) -> Fields:
    hidden = _count(config, "hidden", "hidden_size")
    heads, head_dim = _heads(config, hidden, "num_attention_heads")
    biased = config.flag("qkv_bias", "attention_bias", default=True)
    return _classic(heads, head_dim) | {
        "num_layers": _count(config, "num_layers", "num_hidden_layers"),
        "hidden": hidden,
        "ffn_hidden": _count(config, "ffn_hidden", "intermediate_size"),
        "vocab": _count(config, "vocab", "vocab_size"),
        "max_seq_len": _count(config, "max_seq_len", "max_position_embeddings", default=2048),
        "positions": "rope",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=False),
        "parallel_residual": config.flag("parallel_residual", "use_parallel_residual", default=True),
        "qkv_bias": biased,
        "attention_output_bias": biased,
    }


ARCHITECTURES: Mapping[str, Callable[[JsonObject], Fields]] = {
    "bloom": _bloom,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "llama": _llama,
    "mistral": _mistral,
    "opt": _opt,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
}
