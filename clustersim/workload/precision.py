"""Recipes that mix number formats: in what a job multiplies, keeps, reduces and updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.workload.number_format import FORMATS, WIDTH, Dtype, Format, Quantisation

__all__ = ["RECIPES", "WIDTH", "Dtype", "Recipe", "find_recipe"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """The number formats of a training job.

    Attention core, norms, residual stream, embedding and head are never quantised: only the layers' linear products.

    Parameters
    ----------
    name : str
        as a job's ``dtype`` gives it
    weights : {"bf16", "fp16", "fp32"}
        kept on the device
    activations : {"bf16", "fp16", "fp32"}
        residual stream, and all that is written between products
    gradients : {"bf16", "fp16", "fp32"}
        in which weight gradients are summed over micro-batches and reduced, where the plan does not say
    products : str
        what multiplies operands that are not quantised: a name in :data:`FORMATS`
    master : {"fp32"}, optional
        copy of the weights that the optimizer updates; None: it updates the weights themselves
    moments : {"bf16", "fp16", "fp32"}
        the optimizer's averages
    gathered : {"bf16", "fp16", "fp32"}, optional
        weights as they are gathered over replicas and multiplied; None: as they are kept. PyTorch's FSDP2 keeps a shard
        in fp32, which its optimizer updates, and gathers bf16: ``weights="fp32", master=None, gathered="bf16"``
    quantisation : Quantisation, optional
        of the layers' linear products
    loss_scaling : bool
        gradients are unscaled and searched for infinities before the update
    """

    name: str
    weights: Dtype
    activations: Dtype
    gradients: Dtype
    products: str
    master: Literal["fp32"] | None = "fp32"
    moments: Dtype = "fp32"
    gathered: Dtype | None = None
    quantisation: Quantisation | None = None
    loss_scaling: bool = False

    @property
    def width(self) -> int:
        """Bytes of an activation that is not quantised."""
        return WIDTH[self.activations]

    @property
    def gathered_width(self) -> int:
        """Bytes of a weight as it is gathered."""
        return WIDTH[self.gathered or self.weights]

    @property
    def updated_width(self) -> int:
        """Bytes of a weight as the optimizer reads and writes it: the master copy, or the weight itself."""
        return WIDTH[self.master or self.weights]

    @property
    def activation_operand(self) -> Format:
        """Of a linear layer's input, and of the gradient of its output."""
        return FORMATS[self.products] if self.quantisation is None else self.quantisation.activations

    @property
    def weight_operand(self) -> Format:
        """Of a linear layer's weight."""
        return FORMATS[self.products] if self.quantisation is None else self.quantisation.weights


def _sixteen_bit(name: str, quantisation: Quantisation, *, moments: Dtype = "fp32") -> Recipe:
    """bf16 training whose linear products are quantised."""
    return Recipe(
        name=name,
        weights="bf16",
        activations="bf16",
        gradients="fp32",
        products="bf16",
        moments=moments,
        quantisation=quantisation,
    )


_FP8 = FORMATS["fp8"]
_MXFP8 = FORMATS["mxfp8"]
_NVFP4 = FORMATS["nvfp4"]

RECIPES: Mapping[str, Recipe] = {
    "bf16": Recipe(name="bf16", weights="bf16", activations="bf16", gradients="fp32", products="bf16"),
    "bf16_pure": Recipe(
        name="bf16_pure",
        weights="bf16",
        activations="bf16",
        gradients="bf16",
        products="bf16",
        master=None,
        moments="bf16",
    ),
    "fp16": Recipe(
        name="fp16", weights="fp16", activations="fp16", gradients="fp16", products="fp16", loss_scaling=True
    ),
    "fp32": Recipe(name="fp32", weights="fp32", activations="fp32", gradients="fp32", products="fp32", master=None),
    "tf32": Recipe(name="tf32", weights="fp32", activations="fp32", gradients="fp32", products="tf32", master=None),
    "fp8": _sixteen_bit("fp8", Quantisation(activations=_FP8, weights=_FP8, together=True, promoted=True)),
    "fp8_current": _sixteen_bit("fp8_current", Quantisation(activations=_FP8, weights=_FP8, searches=1, promoted=True)),
    "fp8_rowwise": _sixteen_bit("fp8_rowwise", Quantisation(activations=_FP8, weights=_FP8, searches=2, apart=True)),
    "fp8_blockwise": _sixteen_bit(
        "fp8_blockwise",
        Quantisation(activations=FORMATS["fp8 1x128"], weights=FORMATS["fp8 128x128"]),
        moments="bf16",
    ),
    "mxfp8": _sixteen_bit("mxfp8", Quantisation(activations=_MXFP8, weights=_MXFP8)),
    "nvfp4": _sixteen_bit("nvfp4", Quantisation(activations=_NVFP4, weights=_NVFP4, searches=1, together=True)),
}
"""Recipes by name.

bf16, fp16
    mixed precision: 16-bit weights, activations and products, an fp32 master copy and fp32 moments; Megatron-LM sums
    the gradients of bf16 in fp32 and those of fp16 in fp16 where nothing else is asked for
bf16_pure
    bf16 throughout, without a copy of the weights: what casting a model gives, whose optimizer then updates its weights
    and keeps its averages in their format (Lightning's ``bf16-true``, torchtune)
fp32, tf32
    fp32 throughout; products on the vector units, or on the matrix units in tf32
fp8
    one scale a tensor, from the largest values of earlier steps: delayed scaling, which finds this step's largest value
    while it casts
fp8_current
    one scale a tensor, from its own largest value: one more read of each tensor
fp8_rowwise
    one scale a row, and for the other product one a column, both from the 16-bit tensor
fp8_blockwise
    fp32 scales of 1 x 128 activations and 128 x 128 weights; fp32 gradients and master copy, bf16 moments
mxfp8
    one 8-bit scale of 32 elements, both ways of a tensor quantised from the 16-bit tensor
nvfp4
    one 8-bit scale of 16 elements and one fp32 scale a tensor, which takes one more read; the Hadamard transform of
    the weight gradient's operands is part of the cast

With one scale a tensor the backward pass keeps its sums in fp32, as in Transformer Engine (split accumulators of both
gradients) and torchao (fast accumulation of the output only) by default; with a scale a row torchao accumulates fast
throughout; kernels for blocks of scales promote by themselves, and Blackwell's units have nothing to choose.

All quantised recipes keep the bf16 weights, and each weight quantised by row and by column for the whole step. With one
scale a tensor the second copy is needed on Hopper, whose fp8 units multiply one layout only; Blackwell's multiply both,
and ``replace(recipe.quantisation, copies=1)`` says so. Casts are kernels of their own; fused into the norm or into the
activation before, they would save their read. Tensors are gathered in 16 bit and cast after, unless a plan says
``gather_cast``. Layers that NVIDIA's NVFP4 recipe leaves in bf16 are quantised here like the rest, unless a plan lists
them (``bf16_layers_at_end``, ``module_dtypes``).

Sources: Micikevicius et al., Mixed Precision Training, 2018, section 3; NVIDIA Transformer Engine, user guide, low
precision training (delayed, current and blockwise scaling, MXFP8, NVFP4; handling transposes); DeepSeek-V3, 2024,
section 3.3.3 (fp32 master weights and gradients, bf16 moments); Rouhani et al., Microscaling Data Formats for Deep
Learning, 2023; NVIDIA, Pretraining Large Language Models with NVFP4, 2025, section 4.
"""


def find_recipe(dtype: str | Recipe) -> Recipe:
    """The recipe of a job's ``dtype``: a name in :data:`RECIPES`, or an own one.

    Raises
    ------
    BadInput
        when no recipe has that name
    """
    if isinstance(dtype, Recipe):
        return dtype
    if dtype not in RECIPES:
        rule = f"must be one of {', '.join(RECIPES)}"
        raise BadInput([Fault(key="dtype", value=dtype, rule=rule, nearest=nearest_name(dtype, RECIPES) or "bf16")])
    return RECIPES[dtype]
