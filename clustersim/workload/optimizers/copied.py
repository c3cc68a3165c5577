"""Adam around which 16-bit gradients and weights are copied: what Megatron-LM's optimizers run, pass by pass.

Each pass goes over all tensors at once (multi-tensor kernels) and works in fp32.

References
----------
Megatron-LM v2.5, ``megatron/optimizer/optimizer.py``: ``_copy_model_grads_to_main_grads``,
``_unscale_main_grads_and_check_for_nan``, ``_copy_main_params_to_model_params``; ``clip_grads.py``.
"""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.number_format import WIDTH
from clustersim.workload.precision import Recipe

__all__ = ["copied_adam", "copied_checks"]

_FP32 = WIDTH["fp32"]


def copied_checks(parameters: int, *, recipe: Recipe, gradient_width: int, clip: bool) -> tuple[Kernel, ...]:
    """Passes before the update.

    Gradients of g bytes are copied to fp32 (g + 4), with loss scaling unscaled and searched for infinities (8), and
    where they are clipped their norm is taken (4) and they are scaled by it (8), which their norm is taken to ask for.

    Parameters
    ----------
    parameters : int
        of the shard
    recipe : Recipe
    gradient_width : int
        g [B]
    clip : bool
    """
    passes = [gradient_width + _FP32] if gradient_width != _FP32 else []
    passes += [2 * _FP32] if recipe.loss_scaling else []
    passes += [_FP32, 2 * _FP32] if clip else []
    return tuple(memory_pass(nbytes * parameters, dtype="fp32") for nbytes in passes)


def copied_adam(parameters: int, *, recipe: Recipe) -> tuple[Kernel, ...]:
    """The update of weights in fp32 by gradients in fp32, and where weights have 16 bits their copy.

    Parameters
    ----------
    parameters : int
        of the shard
    recipe : Recipe
    """
    passes = [_FP32 + 2 * recipe.updated_width + 4 * WIDTH[recipe.moments]]
    passes += [recipe.updated_width + WIDTH[recipe.weights]] if recipe.master else []
    return tuple(memory_pass(nbytes * parameters, dtype="fp32") for nbytes in passes)
