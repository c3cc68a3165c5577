"""The model of a row: a card of the library where its name is one, the row's own numbers over it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, get_args

from clustersim.library.model import load_model
from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.model_names import card_called, card_in, nearest_card, one_of_many
from clustersim.study.steps.refusal import RefusedError
from clustersim.workload.model import Model
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shape.lora import LoRA, Target

__all__ = ["model_of"]

_WITHOUT_MTP = re.compile(r"w/o[ _]MTP", re.IGNORECASE)
"""How tables name a model without its multi-token prediction; the row's id has the name that its table gives."""

_ADAPTERS: tuple[tuple[str, LoRA, str], ...] = (
    ("automodel", LoRA(rank=16, targets=get_args(Target)), "rank 16 on all matrices, as AutoModel's benchmarks"),
    ("", LoRA(rank=32, targets=("q", "k", "v")), "rank 32 on queries, keys and values, NeMo's default"),
)
"""Words of a source -> adapters that its rows do not tell.

NeMo's and Megatron-Bridge's ``lora_tuning``: ``adapter_dim`` 32 on ``attention_qkv``, ``linear_qkv``;
NVIDIA-NeMo/Automodel llama3_1_8b_peft_benchmark.yaml: ``match_all_linear``, ``dim`` 16."""

_ONE_DENSE = (("simumax", "deepseek-v3"),)
"""Words of a source, and a card of which it says elsewhere that one dense layer stands before those with experts."""

_GPT: Mapping[str, Any] = {
    "norm": "layernorm",
    "positions": "learned",
    "tied_embeddings": True,
    "qkv_bias": True,
    "attention_output_bias": True,
    "mlp_bias": True,
    "norm_bias": True,
}
_ARCHITECTURES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("llm-foundry", _GPT),
    ("bloom", {**_GPT, "positions": "alibi", "embedding_norm": True}),
    ("mpt", {"norm": "layernorm", "positions": "alibi", "tied_embeddings": True}),
    ("nemotron", {"norm": "layernorm", "positions": "rope", "tied_embeddings": False}),
)
"""Words of a source or a model's name -> what its columns do not tell. Gated ones are otherwise LLaMA's kind, others
GPT's.

llm-foundry's tables give numbers of parameters, which are those with biases and learned positions: its configurations
name neither ALiBi nor ``no_bias``, which the MPT models that were published have."""

_LLAMA: Mapping[str, Any] = {"norm": "rmsnorm", "positions": "rope", "tied_embeddings": False}


def model_of(row: StepRow, seq_len: int) -> tuple[Model, list[str]]:
    """The model, and what is assumed of it.

    Raises
    ------
    RefusedError
        when the row gives no shape and its name is no card's, or a shape that no model has
    """
    model, assumptions = _whole_model(row, seq_len)
    if model.mtp and _WITHOUT_MTP.search(f"{row.id} {row.notes}"):
        model = replace(model, mtp=0)
    if re.search(r"\blora\b", row.notes.lower()) and model.adapters is None:
        adapters, told = next((lora, told) for words, lora, told in _ADAPTERS if words in row.source.lower())
        model = replace(model, adapters=adapters)
        assumptions.append(f"adapters: {told}")
    return model, assumptions


def _whole_model(row: StepRow, seq_len: int) -> tuple[Model, list[str]]:
    name = row.model.lower()
    told = f"{row.source.lower()} {name}"
    words, other = next(((w, a) for w, a in _ARCHITECTURES if w in told), ("", {}))
    needed = {name: getattr(row, name) for name in ("layers", "hidden", "heads", "ffn", "vocab")}
    missing = [name for name, value in needed.items() if value is None]
    card = card_in(row.model)
    if card is None and (missing or row.experts or not words):
        card = card_called(row.model)
    if card is None and missing:
        card = one_of_many(row.model)
    if card == "":
        raise RefusedError("model", f"model {row.model!r}")
    if card is not None:
        return _as_published(row, _card(card, row.model), seq_len)
    near = nearest_card(row.model)
    hint = f"; nearest card: {near}" if near else ""
    if missing:
        raise RefusedError("model", f"model {row.model!r} without {', '.join(missing)}{hint}")
    if row.experts:
        lacking = "which of its layers have experts is not in its columns"
        raise RefusedError("model", f"model {row.model!r}: {lacking}{hint}")
    if row.hidden and row.heads and row.hidden % row.heads:
        raise RefusedError("numbers", f"hidden {row.hidden} is no multiple of {row.heads} heads")
    gated = bool(row.gated_mlp)
    other = other or (_LLAMA if gated else _GPT)
    kind = words or ("llama" if gated else "gpt")
    try:
        model = Model(
            name=row.model or "unnamed",
            num_layers=needed["layers"],
            hidden=needed["hidden"],
            num_heads=needed["heads"],
            num_kv_heads=row.kv_heads or needed["heads"],
            head_dim=needed["hidden"] // needed["heads"],
            ffn_hidden=needed["ffn"],
            gated_mlp=gated,
            vocab=needed["vocab"],
            max_seq_len=seq_len,
            **other,
        )
    except ValueError as error:
        raise RefusedError("numbers", f"model {row.model!r}: {error}") from None
    return model, [f"model: norms, biases and embeddings as those of {kind}"]


def _as_published(row: StepRow, model: Model, seq_len: int) -> tuple[Model, list[str]]:
    """A card with the row's own numbers."""
    given = {"num_layers": row.layers, "hidden": row.hidden, "num_heads": row.heads, "num_kv_heads": row.kv_heads}
    given |= {"vocab": row.vocab, "ffn_hidden": row.ffn if model.ffn_hidden else None}
    if row.heads is not None and row.kv_heads is None and model.num_kv_heads == model.num_heads:
        given["num_kv_heads"] = row.heads
    if row.hidden and row.heads and model.head_dim * model.num_heads == model.hidden:
        given["head_dim"] = row.hidden // row.heads
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    assumptions = [f"model: {model.name} for what the row does not give"]
    if model.num_layers != changes.get("num_layers", model.num_layers):
        changes |= _truncated(row, model, assumptions)
    changes = {key: value for key, value in changes.items() if getattr(model, key) != value}
    if model.positions == "learned" and seq_len > model.max_seq_len:
        changes["max_seq_len"] = seq_len
    experts = model.experts
    if experts is None and row.experts:
        raise RefusedError("numbers", f"{row.experts} experts, {model.name} has none")
    if experts is not None and row.experts:
        own = {"num_experts": row.experts, "top_k": row.topk, "ffn_hidden": row.moe_ffn}
        changes["experts"] = replace(
            changes.get("experts", experts), **{key: value for key, value in own.items() if value is not None}
        )
    try:
        return (replace(model, **changes) if changes else model), assumptions
    except ValueError as error:
        raise RefusedError("model", f"model {row.model!r}: {error}") from None


def _truncated(row: StepRow, model: Model, assumptions: list[str]) -> dict[str, Any]:
    """What changes where a row runs only some layers of a card."""
    changes: dict[str, Any] = {}
    experts: Experts | None = model.experts
    if model.mtp:
        changes["mtp"] = 0
        assumptions.append("model: no multi-token prediction in a model of fewer layers")
    if experts is not None and experts.first_dense > 1:
        if "one dense layer" in row.notes.lower():
            changes["experts"] = replace(experts, first_dense=1)
        elif any(words in row.source.lower() and card == model.name for words, card in _ONE_DENSE):
            changes["experts"] = replace(experts, first_dense=1)
            assumptions.append("model: one layer is dense, as in other tables of the source")
        else:
            assumptions.append(f"model: the first {experts.first_dense} layers are dense, as those of the whole model")
    return changes


@cache
def _load(card: str) -> Model:
    return load_model(card)


def _card(card: str, name: str) -> Model:
    from clustersim.faults import BadInput

    try:
        return _load(card)
    except BadInput:
        raise RefusedError("model", f"model {name!r}: the library has no card of it") from None
