"""Hugging Face ``config.json`` -> :class:`clustersim.workload.model.Model`.

Key names and the values taken for absent keys are those of the configuration classes of the ``transformers`` library,
one function a ``model_type``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.readers import hf_encoder, hf_experts, hf_gpt, hf_llama, hf_mamba, hf_vision
from clustersim.readers.hf_fields import Fields, explain
from clustersim.readers.hf_ignored import ignored_notes
from clustersim.readers.json_object import JsonObject, load_object
from clustersim.workload.model import Model

__all__ = ["ARCHITECTURES", "detect", "read"]

ARCHITECTURES: Mapping[str, Callable[[JsonObject], Fields]] = {
    "bert": hf_encoder.bert,
    "bloom": hf_gpt.bloom,
    "clip": hf_vision.clip,
    "deepseek_v2": hf_experts.deepseek_v2,
    "deepseek_v3": hf_experts.deepseek_v3,
    "falcon": hf_gpt.falcon,
    "gemma": hf_llama.gemma,
    "gemma2": hf_llama.gemma2,
    "gemma3_text": hf_llama.gemma3_text,
    "gpt2": hf_gpt.gpt2,
    "gpt_neox": hf_gpt.gpt_neox,
    "gpt_oss": hf_experts.gpt_oss,
    "llama": hf_llama.llama,
    "mamba": hf_mamba.mamba,
    "mamba2": hf_mamba.mamba2,
    "mistral": hf_llama.mistral,
    "mixtral": hf_experts.mixtral,
    "mpt": hf_gpt.mpt,
    "mt5": hf_encoder.mt5,
    "nemotron_h": hf_mamba.nemotron_h,
    "opt": hf_gpt.opt,
    "phi3": hf_llama.phi3,
    "qwen2": hf_llama.qwen2,
    "qwen2_moe": hf_experts.qwen2_moe,
    "qwen3": hf_llama.qwen3,
    "qwen3_moe": hf_experts.qwen3_moe,
    "t5": hf_encoder.t5,
    "vit": hf_vision.vit,
}
"""The reader of each ``model_type``."""


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
    try:
        model = Model(name=name, sources=sources, **fields)
    except ValueError as error:
        explain(config, error)
        raise BadInput(config.faults) from None
    taken = ", ".join(f"{key} = {value}" for key, value in config.defaults.items())
    assumed = [f"absent keys take the defaults of {kind}: {taken}"] if taken else []
    return model, assumed + ignored_notes(config, kind, model)


def _unsupported(config: JsonObject, kind: object) -> Fault:
    supported = ", ".join(sorted(ARCHITECTURES))
    rule = f"is not yet supported; supported: {supported}" if kind else f"must be given, as one of: {supported}"
    folded = str(kind).lower().replace("-", "_")
    nearest = nearest_name(folded, ARCHITECTURES) if kind else None
    return Fault(file=str(config.path), key="model_type", value=kind, rule=rule, nearest=nearest)
