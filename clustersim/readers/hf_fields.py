"""What readers of several architectures share: counts, heads, windows, and parts made of them."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from clustersim.readers.json_object import JsonObject
from clustersim.workload.model_check import LARGEST
from clustersim.workload.shape.sliding_window import SlidingWindow

__all__ = ["Fields", "classic", "count", "explain", "heads", "nearest_divisor", "part", "whole", "window"]

Fields = dict[str, Any]
"""Arguments of :class:`clustersim.workload.model.Model`."""

T = TypeVar("T")

_LARGEST_PART = 2**24
_INVARIANT = re.compile(r"(?P<field>[\w.]+): (?:\S+ )?(?P<rule>must .+)", re.DOTALL)


def count(config: JsonObject, name: str, *keys: str, default: int | None = None) -> int:
    """A whole number from 1 for the field ``name`` of a model or, dotted, of a part of it."""
    return config.count(name, *keys, largest=LARGEST.get(name, _LARGEST_PART), default=default)


def whole(config: JsonObject, name: str, key: str, *, default: int = 0) -> int:
    """A whole number from 0."""
    if config.values.get(key) == 0 and not isinstance(config.values[key], bool):
        config.take(key)
        config.origins[name] = f"{config.path.name}: {key}"
        return 0
    return count(config, name, key, default=default)


def heads(config: JsonObject, hidden: int, *keys: str, default: int | None = None) -> tuple[int, int]:
    """Number of heads, and h / a, which must be whole."""
    found = count(config, "num_heads", *keys, default=default)
    if found and hidden % found:
        key = next((k for k in keys if config.values.get(k) is not None), keys[0])
        rule = f"must divide the hidden size of {hidden} where head_dim is absent"
        config.fault(key, rule, nearest=nearest_divisor(hidden, found))
    return found, hidden // found if found else 0


def nearest_divisor(number: int, value: int) -> int:
    """The divisor of ``number`` that is closest to ``value``."""
    return min((d for d in range(1, number + 1) if number % d == 0), key=lambda d: abs(d - value))


def classic(num_heads: int, head_dim: int) -> Fields:
    """What GPT-2 and its descendants share: as many key as query heads, layer norms, a plain MLP, biases."""
    return {
        "num_heads": num_heads,
        "num_kv_heads": num_heads,
        "head_dim": head_dim,
        "gated_mlp": False,
        "norm": "layernorm",
        "qkv_bias": True,
        "attention_output_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
    }


def window(
    config: JsonObject,
    num_layers: int,
    max_seq_len: int,
    *,
    default: int | None = None,
    full_every: int = 0,
    first_full: int = 0,
) -> SlidingWindow | None:
    """The window of attention; None where it is off, or as long as the longest sequence.

    ``layer_types``, a list of ``full_attention`` and ``sliding_attention``, goes before ``full_every`` and
    ``first_full``.
    """
    types = config.take("layer_types")
    if "sliding_window" in config.values and config.take("sliding_window") is None:
        return None
    if default is None and "sliding_window" not in config.values:
        if isinstance(types, list) and "sliding_attention" in types:
            config.fault("sliding_window", "must be given where layer_types has sliding_attention")
        return None
    tokens = config.count("window.tokens", "sliding_window", largest=LARGEST["max_seq_len"], default=default)
    if types is not None:
        every = _full_every(types, num_layers)
        if every is None:
            rule = f"must be full_attention or sliding_attention for {num_layers} layers, every n-th of them full"
            config.fault("layer_types", rule)
            return None
        if every == 1:
            return None
        full_every, first_full = every, 0
    if tokens >= max_seq_len:
        return None
    return part(config, "window", SlidingWindow, tokens=tokens, full_every=full_every, first_full=first_full)


def _full_every(types: object, num_layers: int) -> int | None:
    """n where every n-th layer is full, 0 where none is; None where the list is neither."""
    if not isinstance(types, list) or len(types) != num_layers or set(types) - {"full_attention", "sliding_attention"}:
        return None
    full = [i + 1 for i, kind in enumerate(types) if kind == "full_attention"]
    every = full[0] if full else 0
    return every if full == (list(range(every, num_layers + 1, every)) if every else []) else None


def part(config: JsonObject, name: str, cls: type[T], **values: Any) -> T | None:
    """A part of the model; None where the config has a fault, which its reader then tells."""
    if config.faults:
        return None
    try:
        return cls(**values)
    except ValueError as error:
        explain(config, error, prefix=f"{name}.")
        return None


def explain(config: JsonObject, error: ValueError, *, prefix: str = "") -> None:
    """Keep the broken rule of an object as a fault of the key that its number came from."""
    match = _INVARIANT.fullmatch(str(error))
    field, rule = (match["field"], match["rule"]) if match else (prefix.rstrip("."), f"must be legal: {error}")
    origin = config.origins.get(f"{prefix}{field}", "")
    known = origin.partition(": ")[2] if origin.startswith(f"{config.path.name}: ") else ""
    config.fault(known or f"{prefix}{field}", rule)
