"""What makes a model's shape legal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from clustersim.workload.sublayer import LAYOUT, targets

if TYPE_CHECKING:
    from clustersim.workload.model import Model

__all__ = ["LARGEST", "check_model"]

LARGEST: Mapping[str, int] = {
    "num_layers": 10_000,
    "hidden": 2**20,
    "num_heads": 2**16,
    "num_kv_heads": 2**16,
    "head_dim": 2**20,
    "ffn_hidden": 2**24,
    "vocab": 2**24,
    "max_seq_len": 2**30,
    "embedding_dim": 2**20,
}
"""The largest value of each count: far beyond any published model, and near enough to catch a slip of the keyboard."""

_ATTENDING = {"attention", "latent_attention", "linear_attention", "cross_attention"}


def check_model(model: Model) -> None:
    """Raise ``ValueError``, naming field, value and rule, for the first thing that is wrong."""
    _check_count(model, "num_layers", 1, LARGEST["num_layers"])
    _check_layout(model)
    unused = _unused(model)
    for name, most in LARGEST.items():
        if getattr(model, name) is not None:
            _check_count(model, name, 0 if name in unused and getattr(model, name) == 0 else 1, most)
    for name in ("token_types", "num_classes", "mtp", "relative_buckets"):
        _check_count(model, name, 0, 2**16)
    for name, value, rule in _contradictions(model):
        raise ValueError(f"{name}: {value} {rule}")


def _check_count(model: Model, name: str, least: int, most: int) -> None:
    value = getattr(model, name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}: {value!r} must be a whole number from {least} to {most}")


def _check_layout(model: Model) -> None:
    for name in ("layout", "mtp_layout"):
        if wrong := set(getattr(model, name)) - set(LAYOUT):
            raise ValueError(f"{name}: {min(wrong)!r} must be one of {' '.join(LAYOUT)}")
        for letter, part in (("M", "mamba"), ("E", "experts")):
            if letter in getattr(model, name) and getattr(model, part) is None:
                raise ValueError(f"{name}: {letter} must not appear without {part}")
    if model.layout and len(model.layout) != model.num_layers:
        raise ValueError(f"layout: {len(model.layout)} letters must be one for each of the {model.num_layers} layers")


def _unused(model: Model) -> set[str]:
    """Counts that nothing in the model has, which may be 0."""
    sublayers = set(model.num_sublayers())
    unused = set() if sublayers & _ATTENDING else {"num_heads", "num_kv_heads", "head_dim"}
    if "mlp" not in sublayers:
        unused.add("ffn_hidden")
    if not model.head:
        unused.add("vocab")
    return unused


def _contradictions(model: Model) -> Iterator[tuple[str, object, str]]:
    """(field, value, rule) of fields that do not go together."""
    if model.num_kv_heads and model.num_heads % model.num_kv_heads:
        yield "num_kv_heads", model.num_kv_heads, f"must divide the {model.num_heads} query heads"
    if model.norm == "rmsnorm" and model.norm_bias:
        yield "norm_bias", True, "must be False for rmsnorm, which has no bias"
    if model.extra_positions < 0 or (model.extra_positions and model.positions != "learned"):
        yield "extra_positions", model.extra_positions, "must be 0, or positive with learned positions"
    if (model.positions == "relative") != (model.relative_buckets > 0):
        yield "relative_buckets", model.relative_buckets, "must be positive with relative positions, and 0 without"
    if not 0 <= model.rotary_fraction <= 1:
        yield "rotary_fraction", model.rotary_fraction, "must be from 0 to 1"
    if model.shared_norm and not model.parallel_residual:
        yield "shared_norm", True, "must be False without a parallel residual"
    for name in ("head_bias", "head_transform"):
        if getattr(model, name) and not model.head:
            yield name, True, "must be False without a head"
    yield from _parts(model)


def _parts(model: Model) -> Iterator[tuple[str, object, str]]:
    if model.latent and model.linear:
        yield "linear", "LinearAttention", "must be absent where attention is latent"
    if model.latent and model.head_dim != model.latent.query_dim:
        yield "head_dim", model.head_dim, f"must be the {model.latent.query_dim} of a latent query head"
    if model.latent and model.num_kv_heads != model.num_heads:
        yield "num_kv_heads", model.num_kv_heads, f"must be the {model.num_heads} query heads of latent attention"
    if model.window and (not model.causal or model.latent or model.linear):
        yield "window", "SlidingWindow", "must be absent without causal attention of the plain kind"
    if model.mamba and not model.layout and (model.experts or model.latent or model.linear or model.encoder):
        yield "mamba", "Mamba", "must have a layout beside other sublayers"
    if model.patches and (model.vocab or model.max_seq_len != model.patches.num_tokens):
        yield "max_seq_len", model.max_seq_len, f"must be {model.patches.num_tokens}, and vocab 0, for an image"
    if model.mtp and (model.encoder or model.tower or model.patches or not model.head):
        yield "mtp", model.mtp, "must be 0 but for a decoder with a head"
    for name in ("mtp_layout", "mtp_repeated"):
        if getattr(model, name) and not model.mtp:
            yield name, getattr(model, name), "must be left out without mtp"
    if model.adapters:
        legal = {name for run in model.layer_runs() for name in targets(model, run.sublayers)}
        for name in model.adapters.targets:
            if name not in legal:
                yield "adapters.targets", name, f"must be one of {', '.join(sorted(legal)) or 'none'}"
