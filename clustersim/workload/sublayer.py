"""The sublayers that layers are made of: their matrices and their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from clustersim.workload.model import Model

__all__ = ["LAYOUT", "Sublayer", "matmul_parameters", "matrices", "parameters", "targets"]

Sublayer = Literal["attention", "latent_attention", "linear_attention", "cross_attention", "mamba", "mlp", "experts"]

LAYOUT: Mapping[str, Sublayer] = {"M": "mamba", "*": "attention", "-": "mlp", "E": "experts"}
"""Letters of layers with one sublayer each, those of Megatron-LM's ``--hybrid-override-pattern``."""

Matrices = dict[str, tuple[int, int]]


def matrices(model: Model, name: Sublayer) -> Matrices:
    """Matrices of one sublayer as (features in, features out); q, k and v, and gate and up, are fused.

    Parameters
    ----------
    model : Model
    name : Sublayer
        for ``experts``, the matrices of one expert are named ``expert_…``; in ``cross_attention``, that which
        the encoder's tokens meet is ``encoder_kv``

    Raises
    ------
    ValueError
        if the model has no such sublayer
    """
    h, kv = model.hidden, model.num_kv_heads * model.head_dim
    match name:
        case "attention" | "linear_attention":
            return {"qkv": (h, model.qkv_features), "attention_out": (model.attention_features, h)}
        case "cross_attention" if model.encoder:
            q = model.attention_features
            return {"cross_q": (h, q), "encoder_kv": (h, 2 * kv), "cross_out": (q, h)}
        case "latent_attention" if model.latent:
            return model.latent.matrices(h, model.num_heads)
        case "mamba" if model.mamba:
            return model.mamba.matrices(h)
        case "mlp":
            return {"mlp_in": (h, model.ffn_hidden * (2 if model.gated_mlp else 1)), "mlp_out": (model.ffn_hidden, h)}
        case "experts" if model.experts:
            return model.experts.matrices(h)
    raise ValueError(f"name: {name!r} must be a sublayer of {model.name}")


def parameters(model: Model, name: Sublayer) -> int:
    """Parameters of one sublayer, biases included, the norm before it not; of all experts."""
    if name == "mamba" and model.mamba:
        return model.mamba.parameters(model.hidden)
    if name == "experts" and model.experts:
        return model.experts.parameters(model.hidden)
    found = matrices(model, name)
    count = _elements(found)
    if name == "mlp":
        return count + model.mlp_bias * sum(columns for _, columns in found.values())
    count += model.attention_output_bias * model.hidden
    if name == "latent_attention" and model.latent:
        biased = [columns for matrix, (_, columns) in found.items() if matrix in ("q", "q_down", "kv_down")]
        return count + model.qkv_bias * sum(biased) + model.latent.norm_parameters
    count += model.qkv_bias * sum(columns for matrix, (_, columns) in found.items() if not matrix.endswith("_out"))
    return count + (model.attention_sinks and name == "attention") * model.num_heads


def matmul_parameters(model: Model, name: Sublayer) -> int:
    """Elements of the matrices of one sublayer that a token is multiplied by: of ``top_k`` experts."""
    found = matrices(model, name)
    experts = {matrix: shape for matrix, shape in found.items() if matrix.startswith("expert_")}
    again = 0 if model.experts is None else (model.experts.top_k - 1) * _elements(experts)
    return _elements(found) + again


def targets(model: Model, sublayers: tuple[Sublayer, ...]) -> Matrices:
    """Matrices that an adapter can sit on, each by itself, in a layer of these sublayers."""
    h, q, kv = model.hidden, model.attention_features, model.num_kv_heads * model.head_dim
    found: Matrices = {}
    if "attention" in sublayers:
        found |= {"q": (h, q), "k": (h, kv), "v": (h, kv), "o": (q, h)}
    if "mlp" in sublayers:
        found |= {"up": (h, model.ffn_hidden), "down": (model.ffn_hidden, h)}
        if model.gated_mlp:
            found["gate"] = (h, model.ffn_hidden)
    return found


def _elements(found: Matrices) -> int:
    return sum(rows * columns for rows, columns in found.values())
