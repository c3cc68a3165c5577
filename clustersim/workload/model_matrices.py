"""Matrices of a whole model, of its layers and around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustersim.workload.sublayer import matrices

if TYPE_CHECKING:
    from clustersim.workload.model import Model

__all__ = ["layer_matrices", "outer_matrices", "sequence_matrices"]


def layer_matrices(model: Model) -> dict[str, tuple[int, int]]:
    """Matrices of one sublayer of each kind as (features in, features out), q, k and v, and gate and up, fused."""
    return {matrix: shape for name in model.num_sublayers() for matrix, shape in matrices(model, name).items()}


def outer_matrices(model: Model) -> dict[str, tuple[int, int]]:
    """Matrices outside the layers that every token is multiplied by, as (features in, features out)."""
    found = {}
    if model.embedding_dim is not None:
        found["project_in"] = (model.embedding_dim, model.hidden)
        found["project_out"] = (model.hidden, model.embedding_dim)
    if model.head_transform:
        found["transform"] = (model.hidden, model.hidden)
    if model.head:
        found["head"] = (model.embedding_width, model.vocab)
    return found


def sequence_matrices(model: Model) -> dict[str, tuple[int, int, int]]:
    """Matrices that a part of a sequence is multiplied by, as (features in, features out, tokens)."""
    found = {}
    if model.patches:
        found["patches"] = (*model.patches.matrix(model.hidden), model.patches.num_patches)
    if model.pooler:
        found["pooler"] = (model.hidden, model.hidden, 1)
    if model.num_classes:
        found["classes"] = (model.hidden, model.num_classes, 1)
    if model.tower:
        found["projection"] = (model.hidden, model.tower.projection, 1)
        found["tower_projection"] = (model.tower.hidden, model.tower.projection, 1)
    return found
