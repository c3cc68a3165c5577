"""Adam: the bytes it keeps for each parameter, and the update as passes over memory."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.op import Compute
from clustersim.workload.precision import WIDTH, Dtype, Recipe, find_recipe

__all__ = ["optimizer_step", "resident_bytes"]


def resident_bytes(
    parameters: int, *, dtype: str | Recipe, gradient_dtype: Dtype, shards: int = 1
) -> Mapping[str, int]:
    """What a rank holds of its parameters throughout a step, by memory key.

    Weights in ``dtype``, gradients in ``gradient_dtype``, and the optimizer's two moments in fp32 with, under a 16-bit
    dtype, an fp32 copy of the weights: 2 + 4 + 12 bytes a parameter in mixed precision, 4 + 4 + 8 in fp32. Buckets are
    views of the gradients and are reduced in place.

    Parameters
    ----------
    parameters : int
        weights on this rank
    dtype, gradient_dtype : str
    shards : int
        ranks over which the optimizer state is split (ZeRO-1)

    References
    ----------
    Rajbhandari et al., ZeRO, 2020, section 3.1 (12 bytes of state a parameter); Megatron-LM, distributed optimizer,
    table of bytes a parameter: 18 with fp32 gradients, 6 + 12/d sharded over d.
    """
    recipe = find_recipe(dtype)
    state = 12 if recipe.master else 8
    return {
        "gpu/weights": WIDTH[recipe.weights] * parameters,
        "gpu/gradients": WIDTH[gradient_dtype] * parameters,
        "gpu/optimizer": state * -(-parameters // shards),
    }


def optimizer_step(parameters: int, *, dtype: str | Recipe, gradient_dtype: Dtype, shards: int = 1) -> Compute:
    """One update of this rank's parameters or of its shard.

    Passes, each over all tensors at once (multi-tensor kernels): fp16 checks the gradients for infinities and unscales
    them (read, write); the gradient norm (read); Adam (read gradient, weight and both moments; write weight and both
    moments; write the 16-bit weight); the gradients are zeroed for the next step, the whole of them.
    """
    gradient = WIDTH[gradient_dtype]
    shard = -(-parameters // shards)
    recipe = find_recipe(dtype)
    low_precision_copy = WIDTH[recipe.weights] if recipe.master else 0
    unscale = [memory_pass(2 * gradient * shard, dtype="fp32")] if recipe.loss_scaling else []
    return Compute(
        name="adam",
        kind="optimizer",
        kernels=(
            *unscale,
            memory_pass(gradient * shard, dtype="fp32"),
            memory_pass((gradient + 24 + low_precision_copy) * shard, dtype="fp32"),
            memory_pass(gradient * parameters, dtype="fp32"),
        ),
        category="optimizer",
    )
