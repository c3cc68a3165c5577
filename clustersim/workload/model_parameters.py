"""The exact count of a model's parameters, by part and by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustersim.workload.sublayer import Sublayer, matmul_parameters, parameters, targets

if TYPE_CHECKING:
    from clustersim.workload.model import Model

__all__ = [
    "adapter_parameters",
    "layer_norm_parameters",
    "mtp_parameters",
    "norm_parameters",
    "parameters_by_part",
    "parameters_per_layer",
    "parameters_per_token",
]


def norm_parameters(model: Model, width: int) -> int:
    """Parameters of a norm over ``width`` features."""
    return width * (2 if model.norm_bias else 1)


def layer_norm_parameters(model: Model, index: int) -> int:
    """Parameters of the norms of layer ``index``: one a sublayer, two with ``post_norms``, and those of q and k."""
    return _norms(model, model.layer(index))


def _norms(model: Model, sublayers: tuple[Sublayer, ...]) -> int:
    norms = (1 if model.shared_norm else len(sublayers)) * (1 + model.post_norms)
    on_heads = model.qk_norm and "attention" in sublayers
    return norms * norm_parameters(model, model.hidden) + on_heads * 2 * norm_parameters(model, model.head_dim)


def parameters_per_layer(model: Model) -> dict[str, int]:
    """Parameters of one sublayer of each kind, and of the norms of the layer that has most.

    With every bias present ::

        attention  h·(a + 2k)·d + (a + 2k)·d  +  a·d·h + h
        mlp        2·h·f + f + h,  gated 3·h·f + 2·f + h
        norms      2h a sublayer,  rmsnorm h;  + 2·d weights with qk_norm
    """
    norms = max(layer_norm_parameters(model, run.first) for run in model.layer_runs())
    return {**{name: parameters(model, name) for name in model.num_sublayers()}, "norms": norms}


def parameters_by_part(model: Model) -> dict[str, int]:
    """Parameters of the whole model by part; a tied head counts in the embedding alone.

    Parts that only some architectures have are there when they are not empty.
    """
    hidden, width = model.hidden, model.embedding_width
    norm, dense = norm_parameters(model, hidden), (hidden + 1) * hidden
    layers = sum(parameters(model, name) * count for name, count in model.num_sublayers().items())
    layers += sum(layer_norm_parameters(model, run.first) * run.count for run in model.layer_runs())
    learned = (model.max_seq_len + model.extra_positions) * hidden if model.positions == "learned" else 0
    found = {
        "embedding": model.vocab * width,
        "positions": learned + model.relative_buckets * model.num_heads,
        "projections": 0 if model.embedding_dim is None else 2 * width * hidden,
        "embedding_norm": model.embedding_norm * norm,
        "layers": layers,
        "final_norm": model.final_norm * norm,
        "head": model.head * (width * (not model.tied_embeddings) + model.head_bias) * model.vocab,
    }
    encoder, tower = model.encoder_stack, model.tower_stack
    more = {
        "token_types": model.token_types * hidden,
        "patches": model.patches.parameters(hidden) if model.patches else 0,
        "head_transform": model.head_transform * (dense + norm),
        "pooler": model.pooler * dense,
        "classes": (hidden + 1) * model.num_classes,
        "encoder": encoder.num_parameters if encoder else 0,
        "tower": tower.num_parameters if tower else 0,
        "tower_projections": model.tower.projection_parameters(hidden) if model.tower else 0,
        "adapters": adapter_parameters(model),
    }
    return found | {part: count for part, count in more.items() if count}


def mtp_parameters(model: Model) -> int:
    """Parameters of the modules that predict further tokens; of one where it is repeated."""
    norms, layers = 3 * norm_parameters(model, model.hidden), 0
    for sublayers in model.mtp_layers() if model.mtp else ():
        layers += sum(parameters(model, name) for name in sublayers) + _norms(model, sublayers)
    modules = min(model.mtp, 1) if model.mtp_repeated else model.mtp
    return modules * (2 * model.hidden**2 + norms + layers)


def adapter_parameters(model: Model) -> int:
    """Parameters of the adapters."""
    if model.adapters is None:
        return 0
    total = 0
    for run in model.layer_runs():
        shapes = targets(model, run.sublayers)
        ends = sum(sum(shapes[name]) for name in model.adapters.targets if name in shapes)
        total += run.count * model.adapters.rank * ends
    return total


def parameters_per_token(model: Model) -> int:
    """Elements of all matrices that a token is multiplied by."""
    found = sum(matmul_parameters(model, name) * count for name, count in model.num_sublayers().items())
    found += sum(rows * columns for rows, columns in model.outer_matrices.values()) + adapter_parameters(model)
    return found + (model.encoder_stack.matmul_parameters if model.encoder_stack else 0)
