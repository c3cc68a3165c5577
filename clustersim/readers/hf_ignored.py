"""Keys of a Hugging Face ``config.json`` that no model is made of: which of them a user must hear about."""

from __future__ import annotations

import re

from clustersim.readers.json_object import JsonObject
from clustersim.workload.model import Model

__all__ = ["ignored_notes"]

_NOT_MODELLED = {
    "sliding_window": "attention is counted over the whole sequence",
    "layer_types": "attention is counted over the whole sequence in every layer",
    "rope_scaling": "it stretches the positions; work and size stay the same",
    "rope_parameters": "it stretches the positions; work and size stay the same",
    "quantization_config": "weights are counted in the dtype of the job",
    "architectures": "a language model with a head over the vocabulary is counted",
    "layerdrop": "every layer is counted",
    "n_ctx": "another key sets the longest sequence",
    "n_inner": "the MLP is four times the hidden size in this architecture",
    "num_experts": "the MLP is counted as dense",
    "num_local_experts": "the MLP is counted as dense",
}

_HARMLESS = re.compile(
    r"""
    _.* | summary_.* | .*_token_id | .*dropout(_prob)? | .*_pdrop | .*_eps | .*_epsilon | init.* | rope_theta
    | rotary_.* | model_type | auto_map | torch_dtype | dtype | transformers_version | tokenizer_class | seed | prefix
    | hidden_act | activation_function | partial_rotary_factor | pretraining_tp | use_cache | gradient_checkpointing
    | use_sliding_window | max_window_layers | attention_softmax_in_fp32 | masked_softmax_fusion | bias_dropout_fusion
    | skip_bias_add(_qkv)? | slow_but_exact | offset_alibi | apply_residual_connection_post_layernorm
    | scale_attn_weights | scale_attn_by_inverse_layer_idx | reorder_and_upcast_attn | layer_norm_elementwise_affine
    | output_projection | task_specific_params | finetuning_task | id2label | label2id | unsloth_version
    """,
    re.VERBOSE,
)
"""Tokens, seeds, rates of dropout, activations and the like: neither work nor size depends on them."""


def ignored_notes(config: JsonObject, kind: str, model: Model) -> list[str]:
    """One sentence for each key that was not read and could change work or size.

    Parameters
    ----------
    config : JsonObject
        after ``model`` has been read from it
    kind : str
        its ``model_type``
    model : Model
    """
    ignored = config.unread()
    if kind == "mistral" and "sliding_window" not in config.values:
        ignored["sliding_window"] = 4096  # the default of that architecture
    if config.values.get("use_sliding_window") is False:
        ignored.pop("sliding_window", None)
    notes = []
    for key, value in ignored.items():
        if _is_off(key, value, model) or _HARMLESS.fullmatch(key):
            continue
        why = _NOT_MODELLED.get(key, f"not a key that {kind} is known to have")
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:57]}..."
        notes.append(f"{key} = {shown} is ignored: {why}")
    return notes


def _is_off(key: str, value: object, model: Model) -> bool:
    """Whether an ignored value asks for nothing: false, null, empty, or what the model has anyway."""
    match key, value:
        case "sliding_window", int():
            return value >= model.max_seq_len
        case "layer_types", list():
            return all(entry == "full_attention" for entry in value)
        case "architectures", list():
            return all(str(entry).endswith(("ForCausalLM", "LMHeadModel")) for entry in value)
        case "rope_parameters", dict():
            return bool(value.get("rope_type", "default") == "default")
        case "n_ctx", int():
            return value == model.max_seq_len
        case "n_inner", int():
            return value == model.ffn_hidden
    return not value
