"""Adam as separate kernels: an operator a line of its formula, over lists of tensors or over one tensor at a time."""

from __future__ import annotations

from typing import Literal, get_args

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.number_format import WIDTH
from clustersim.workload.precision import Recipe

__all__ = ["UPDATE_KERNELS", "UpdateKernels", "separate_adam"]

UpdateKernels = Literal["fused", "copied", "foreach", "loop"]
UPDATE_KERNELS = get_args(UpdateKernels)


def separate_adam(
    parameters: int, *, recipe: Recipe, gradient_width: int, kernels_of: UpdateKernels, num_tensors: int
) -> tuple[Kernel, ...]:
    """An update of a shard.

    With w bytes of the weight that is updated, g of its gradient and m of an average, a parameter, the operators move::

        decay 2w · first average 2m + g · second: scaled 2m, squares added 2m + g · root 2m · its correction 2m ·
        epsilon 2m · step 2w + 2m

    and where there is a master copy w and the bytes of the weight for the copy. ``foreach`` runs each once over all
    tensors, ``loop`` once a tensor.

    Parameters
    ----------
    parameters : int
        of the shard
    recipe : Recipe
    gradient_width : int
        g [B]
    kernels_of : {"foreach", "loop"}
    num_tensors : int
        that the shard consists of

    References
    ----------
    PyTorch, ``torch/optim/adam.py``, ``_multi_tensor_adam`` and ``_single_tensor_adam``.
    """
    w, g, m = recipe.updated_width, gradient_width, WIDTH[recipe.moments]
    passes = [2 * w, 2 * m + g, 2 * m, 2 * m + g, 2 * m, 2 * m, 2 * m, 2 * w + 2 * m]
    if recipe.master:
        passes.append(w + WIDTH[recipe.weights])
    count = num_tensors if kernels_of == "loop" else 1
    each = -(-parameters // count)
    return tuple(memory_pass(nbytes * each, dtype="fp32", count=count) for nbytes in passes)
