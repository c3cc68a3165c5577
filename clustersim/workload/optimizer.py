"""The update of a rank's parameters: the bytes kept for it throughout a step, and its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.workload.layers.kernels import memory_pass, weight_cast
from clustersim.workload.matrix import Matrix, elements, hidden_matrices
from clustersim.workload.op import Compute
from clustersim.workload.optimizers.adafactor import ADAFACTOR
from clustersim.workload.optimizers.elementwise import (
    ADAGRAD,
    ADAM,
    ADAM_8BIT,
    ADAMW,
    LAMB,
    LION,
    SGD,
    SGD_MOMENTUM,
)
from clustersim.workload.optimizers.muon import MUON
from clustersim.workload.optimizers.rule import Optimizer
from clustersim.workload.precision import WIDTH, Dtype, Recipe, find_recipe

__all__ = ["OPTIMIZERS", "find_optimizer", "optimizer_step", "resident_bytes"]

OPTIMIZERS: Mapping[str, Optimizer] = {
    "adam": ADAM,
    "adamw": ADAMW,
    "adam_8bit": ADAM_8BIT,
    "adafactor": ADAFACTOR,
    "adagrad": ADAGRAD,
    "lamb": LAMB,
    "lion": LION,
    "muon": MUON,
    "sgd": SGD,
    "sgd_momentum": SGD_MOMENTUM,
}
"""Optimizers by name."""


def find_optimizer(optimizer: str | Optimizer) -> Optimizer:
    """The optimizer that a plan names, or an own one.

    Raises
    ------
    BadInput
        when no optimizer has that name
    """
    if not isinstance(optimizer, str):
        return optimizer
    if optimizer not in OPTIMIZERS:
        rule, nearest = f"must be one of {', '.join(OPTIMIZERS)}", nearest_name(optimizer, OPTIMIZERS) or "adam"
        raise BadInput([Fault(key="plan.optimizer", value=optimizer, rule=rule, nearest=nearest)])
    return OPTIMIZERS[optimizer]


def resident_bytes(
    parameters: int,
    *,
    recipe: str | Recipe,
    optimizer: str | Optimizer = "adam",
    gradient_dtype: Dtype,
    weight_shards: int = 1,
    gradient_shards: int = 1,
    state_shards: int = 1,
    matrices: Sequence[Matrix] = (),
) -> Mapping[str, int]:
    """What a rank holds of its parameters throughout a step, by memory key.

    Under bf16 and Adam 2 bytes of weight, 4 of gradient in fp32 and 12 of optimizer: a master copy and two averages;
    in fp32 4 + 4 + 8. A quantised recipe adds the copies of the hidden matrices that its products read. Buckets are
    views of the gradients and are reduced in place. Left out: the fp32 copy of 16-bit gradients that Megatron-LM makes
    for its update.

    Parameters
    ----------
    parameters : int
        weights on this rank, before any of the splits below
    recipe : str or Recipe
    optimizer : str or Optimizer
    gradient_dtype : {"bf16", "fp16", "fp32"}
    weight_shards, gradient_shards, state_shards : int
        ranks over which each is split: state by ZeRO-1, gradients too by ZeRO-2, weights too by ZeRO-3. The quantised
        copies of split weights are made of what is gathered and dropped with it
    matrices : Sequence[Matrix]
        those of the parameters that are matrices

    Raises
    ------
    BadInput
        when recipe or optimizer is a name that there is not

    References
    ----------
    Rajbhandari et al., ZeRO, 2020, section 3.1 (12 bytes of state a parameter); Megatron-LM, distributed optimizer,
    table of bytes a parameter: 18 with fp32 gradients, 6 + 12/d sharded over d.
    """
    recipe = find_recipe(recipe)
    weights = WIDTH[recipe.weights] * -(-parameters // weight_shards)
    if recipe.quantisation is not None and weight_shards == 1:
        weights += recipe.quantisation.weight_copies_nbytes(elements(hidden_matrices(matrices)))
    master = WIDTH[recipe.master] * -(-parameters // state_shards) if recipe.master else 0
    state = find_optimizer(optimizer).state_nbytes(parameters, recipe=recipe, matrices=matrices, shards=state_shards)
    return {
        "gpu/weights": weights,
        "gpu/gradients": WIDTH[gradient_dtype] * -(-parameters // gradient_shards),
        "gpu/optimizer": master + state,
    }


def optimizer_step(
    parameters: int,
    *,
    recipe: str | Recipe,
    optimizer: str | Optimizer = "adam",
    gradient_dtype: Dtype,
    shards: int = 1,
    gradient_shards: int = 1,
    weight_shards: int = 1,
    matrices: Sequence[Matrix] = (),
) -> Compute:
    """One update of this rank's parameters or of its shard.

    Passes, each over all tensors at once (multi-tensor kernels): with loss scaling the gradients are checked for
    infinities and unscaled (read, write); the gradient norm (read); the optimizer's own; the gradients that the rank
    holds are zeroed for the next step; where the rank holds whole weights, a quantised recipe casts the hidden matrices
    for the next step.

    Parameters
    ----------
    parameters : int
        weights on this rank
    recipe : str or Recipe
    optimizer : str or Optimizer
    gradient_dtype : {"bf16", "fp16", "fp32"}
    shards, gradient_shards, weight_shards : int
        ranks that share the update; over which the gradients, and the weights, are split
    matrices : Sequence[Matrix]
        those of the parameters that are matrices

    Raises
    ------
    BadInput
        when recipe or optimizer is a name that there is not
    """
    recipe, rule = find_recipe(recipe), find_optimizer(optimizer)
    gradient, shard = WIDTH[gradient_dtype], -(-parameters // shards)
    unscale = [memory_pass(2 * gradient * shard, dtype="fp32")] if recipe.loss_scaling else []
    cast = weight_cast(recipe, matrices) if weight_shards == 1 else ()
    return Compute(
        name=rule.name,
        kind="optimizer",
        kernels=(
            *unscale,
            memory_pass(gradient * shard, dtype="fp32"),
            *rule.kernels(parameters, recipe=recipe, gradient_width=gradient, matrices=matrices, shards=shards),
            memory_pass(gradient * -(-parameters // gradient_shards), dtype="fp32"),
            *cast,
        ),
        category="optimizer",
    )
