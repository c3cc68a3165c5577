"""Configs with an encoder of text: BERT, T5 and mT5."""

from __future__ import annotations

from clustersim.readers.hf_fields import Fields, classic, count, heads, part
from clustersim.readers.json_object import JsonObject
from clustersim.workload.model_check import LARGEST
from clustersim.workload.shape.encoder import Encoder

__all__ = ["bert", "mt5", "t5"]

_HEADS = ("BertForMaskedLM", "BertForPreTraining", "BertModel")


def bert(config: JsonObject) -> Fields:
    """BERT; ``architectures`` says what is on top.

    ``BertForMaskedLM`` has a head over the vocabulary, ``BertModel`` a pooler, ``BertForPreTraining`` both and two
    classes for next-sentence prediction.
    """
    hidden = count(config, "hidden", "hidden_size")
    num_heads, head_dim = heads(config, hidden, "num_attention_heads")
    top = _architecture(config, _HEADS)
    head = top != "BertModel"
    if config.take("is_decoder"):
        config.fault("is_decoder", "must be false", nearest=False)
    return classic(num_heads, head_dim) | {
        "num_layers": count(config, "num_layers", "num_hidden_layers"),
        "hidden": hidden,
        "ffn_hidden": count(config, "ffn_hidden", "intermediate_size"),
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": count(config, "max_seq_len", "max_position_embeddings", default=512),
        "positions": "learned",
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=True),
        "embedding_norm": True,
        "final_norm": False,
        "causal": False,
        "token_types": count(config, "token_types", "type_vocab_size", default=2),
        "head": head,
        "head_bias": head,
        "head_transform": head,
        "pooler": top != "BertForMaskedLM",
        "num_classes": 2 if top == "BertForPreTraining" else 0,
    }


def _architecture(config: JsonObject, known: tuple[str, ...]) -> str:
    """The entry of ``architectures`` that is known, else the first of ``known``, which is told."""
    given = config.values.get("architectures")
    found = next((name for name in known if isinstance(given, list) and name in given), None)
    if found is None:
        if not given:
            config.defaults["architectures"] = known[0]
        return known[0]
    config.take("architectures")
    return found


def t5(config: JsonObject) -> Fields:
    """T5 and Flan-T5."""
    return _t5(config, mlp="relu", tied=True)


def mt5(config: JsonObject) -> Fields:
    """mT5."""
    return _t5(config, mlp="gated-gelu", tied=False)


def _t5(config: JsonObject, *, mlp: str, tied: bool) -> Fields:
    """RMS norms, no biases, a table of relative positions in encoder and decoder; no length is too long for it."""
    num_layers = count(config, "encoder.num_layers", "num_layers")
    num_heads = count(config, "num_heads", "num_heads")
    head_dim = count(config, "head_dim", "d_kv")
    ffn = count(config, "ffn_hidden", "d_ff")
    words = ("relu", "gated-gelu", "gated-silu", "gelu", "silu", "gated-relu")
    kind = config.word("gated_mlp", "feed_forward_proj", words=words, default=mlp)
    if config.take("is_encoder_decoder") is False:
        config.fault("is_encoder_decoder", "must be true", nearest=True)
    encoder = part(
        config, "encoder", Encoder, num_layers=num_layers, num_heads=num_heads, head_dim=head_dim, ffn_hidden=ffn
    )
    return {
        "num_layers": count(config, "num_layers", "num_decoder_layers", default=num_layers),
        "hidden": count(config, "hidden", "d_model"),
        "num_heads": num_heads,
        "num_kv_heads": num_heads,
        "head_dim": head_dim,
        "ffn_hidden": ffn,
        "gated_mlp": kind.startswith("gated-"),
        "vocab": count(config, "vocab", "vocab_size"),
        "max_seq_len": LARGEST["max_seq_len"],
        "norm": "rmsnorm",
        "positions": "relative",
        "relative_buckets": count(config, "relative_buckets", "relative_attention_num_buckets", default=32),
        "tied_embeddings": config.flag("tied_embeddings", "tie_word_embeddings", default=tied),
        "encoder": encoder,
    }
