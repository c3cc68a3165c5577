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
    "architectures": "a head as the architecture has it by default is counted",
    "layerdrop": "every layer is counted",
    "n_ctx": "another key sets the longest sequence",
    "n_inner": "the MLP is four times the hidden size in this architecture",
    "num_experts": "the MLP is counted as dense",
    "num_local_experts": "the MLP is counted as dense",
    "ep_size": "the plan of the job says how experts are spread",
    "residual_in_fp32": "the residual stream is counted in the dtype of the job",
}

_HARMLESS = re.compile(
    r"""
    _.* | summary_.* | .*_token_id | .*dropout(_prob|_rate)? | .*_pdrop | .*_eps | .*_epsilon | init.* | rope_theta
    | rotary_.* | model_type | auto_map | torch_dtype | dtype | transformers_version | tokenizer_(class|name) | seed
    | prefix | hidden_act | activation_function | partial_rotary_factor | pretraining_tp | use_cache
    | gradient_checkpointing | use_sliding_window | max_window_layers | attention_softmax_in_fp32
    | masked_softmax_fusion | bias_dropout_fusion | skip_bias_add(_qkv)? | slow_but_exact | offset_alibi
    | apply_residual_connection_post_layernorm | scale_attn_weights | scale_attn_by_inverse_layer_idx
    | reorder_and_upcast_attn | layer_norm_elementwise_affine | output_projection | task_specific_params
    | finetuning_task | id2label | label2id | num_labels | unsloth_version | verbose | problem_type | return_dict
    # activations, scales and softmaxes
    | hidden_activation | dense_act_fn | is_gated_act | mlp_hidden_act | mamba_hidden_act | swiglu_limit
    | .*softcapping | query_pre_attn_scalar | logit_scale | softmax_scale | clip_qkv | alibi_bias_max | logits_scaling
    | attn_impl | attn_uses_sequence_id | prefix_lm | embedding_fraction | position_embedding_type | classifier_dropout
    | relative_attention_max_distance | original_max_position_embeddings | initial_context_length
    # how a router scores and is trained
    | router_.* | output_router_logits | norm_topk_prob | scoring_func | routed_scaling_factor | topk_method
    | .*aux_loss.*
    # how a state-space mixer starts
    | rescale_prenorm_residual | time_step_.* | rms_norm | fused_add_norm | pad_vocab_size_multiple
    # text generation
    | cache_implementation | num_logits_to_keep | mamba_ssm_cache_dtype | top_[kp] | temperature | num_.*beam.*
    | .*penalty | (max|min)_length | .*no_repeat_ngram_size | num_return_sequences | chunk_size_feed_forward
    """,
    re.VERBOSE,
)
"""Tokens, seeds, rates of dropout, activations, routing scores and the like: neither work nor size depends on them."""

_USUAL = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForImageClassification", "CLIPModel")


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
    notes = []
    for key, value in config.unread().items():
        if _is_off(key, value, model) or _HARMLESS.fullmatch(key.rpartition(".")[2]):
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
            return all(str(entry).endswith(_USUAL) for entry in value)
        case "rope_parameters", dict():
            return bool(value.get("rope_type", "default") == "default")
        case "n_ctx", int():
            return value == model.max_seq_len
        case "n_inner", int():
            return value == model.ffn_hidden
    return not value
