"""Modules and layers whose products are in other number formats than the job's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from clustersim.workload.matrix import Matrix, elements, hidden_matrices
from clustersim.workload.number_format import Quantisation
from clustersim.workload.precision import RECIPES, Recipe

__all__ = ["MODULE_DTYPES", "PRODUCTS", "by_quantisation", "dtype_of_module", "in_dtype"]

PRODUCTS: Mapping[str, str] = {
    "attention": "projections of attention of any kind",
    "mamba_in": "projections into a Mamba mixer",
    "mamba_out": "the projection out of it",
    "mlp": "the MLP of a layer without experts",
    "experts": "routed experts",
    "shared_experts": "experts that every token meets",
    "latent": "the matrices into the width of latent experts and back",
    "mtp": "modules that predict further tokens, whole",
}
"""Module by name -> its products."""

MODULE_DTYPES = tuple(
    f"{module}:{name}"
    for module in PRODUCTS
    for name, recipe in RECIPES.items()
    if name == "bf16" or recipe.quantisation is not None
)
"""What ``plan.module_dtypes`` may list: a module, and the recipe whose operands its products have.

As Transformer Engine's precision configurations under Megatron-Core (``--te-precision-config-file``) match modules by
name, where the layer's products are quantised at all (``override_nonquantized_autocast`` is off by default).
"""


def dtype_of_module(module_dtypes: Sequence[str], module: str) -> str:
    """The recipe that is listed for ``module``, the last one where there are several; empty where there is none."""
    found = dict(item.split(":") for item in module_dtypes)
    return found.get(module, "")


def in_dtype(matrices: Iterable[Matrix], dtype: str) -> tuple[Matrix, ...]:
    """Matrices whose products have the operands of a recipe; the job's where ``dtype`` is empty."""
    return tuple(replace(matrix, dtype=dtype) if dtype else matrix for matrix in matrices)


def by_quantisation(recipe: Recipe, matrices: Iterable[Matrix]) -> dict[Quantisation, int]:
    """Elements of hidden matrices by how they are quantised; none under a recipe that quantises nothing."""
    found: dict[Quantisation, list[Matrix]] = {}
    for matrix in hidden_matrices(matrices):
        own = RECIPES[matrix.dtype].quantisation if matrix.dtype else recipe.quantisation
        if own is not None and recipe.quantisation is not None:
            found.setdefault(own, []).append(matrix)
    return {quantisation: elements(own) for quantisation, own in found.items()}
