"""Element-wise parts of a layer operator by operator, as a tensor library runs them line by line.

Each operator is a pass that reads its operands and writes its result, of w bytes an element, or 4 where the formula is
evaluated in fp32. Operators on one number a row are kernels of few bytes.
"""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.shard import Shard

__all__ = ["gate_backward", "gate_forward", "rms_norm_backward", "rms_norm_forward", "rope_operators"]


def rms_norm_forward(shard: Shard) -> tuple[Kernel, ...]:
    """y = w · (x / √(mean(x²) + ε)): cast w + 4, square 8, mean 4, times the root 8, cast 4 + w, times the weight 2w.

    References
    ----------
    Hugging Face Transformers, ``LlamaRMSNorm``.
    """
    w = shard.width
    rows = 2 * [memory_pass(8 * shard.rows, dtype="fp32")]
    return (*_passes(shard, w + 4, 8, 4), *rows, *_passes(shard, 8, 4 + w, 2 * w))


def rms_norm_backward(shard: Shard) -> tuple[Kernel, ...]:
    """Gradients of :func:`rms_norm_forward` by the rules of its operators.

    Of the product with the weight: that of the norm 2w, of the weight 3w and w; cast w + 4; of the product with the
    root: that of x 8, of the root 12 and 4; of square and mean 8 and 8; the sum of both 12; cast 4 + w.
    """
    w = shard.width
    rows = 3 * [memory_pass(8 * shard.rows, dtype="fp32")]
    return (*_passes(shard, 2 * w, 3 * w, w, w + 4, 8, 12, 4), *rows, *_passes(shard, 8, 8, 12, 4 + w))


def gate_forward(shard: Shard, elements: int) -> tuple[Kernel, ...]:
    """The activation of a gate of so many elements, then the product with what it gates."""
    return _of(shard, elements, 2, 3)


def gate_backward(shard: Shard, elements: int) -> tuple[Kernel, ...]:
    """Gradients of both factors, then that of the activation."""
    return _of(shard, elements, 3, 3, 3)


def rope_operators(shard: Shard, elements: int) -> tuple[Kernel, ...]:
    """x · cos + rotated(x) · sin over queries, then over keys: two products, a negation, a concatenation, the sum.

    Backward the same operators turn the other way.

    Parameters
    ----------
    shard : Shard
    elements : int
        of queries and keys that are rotated, taken as two halves

    References
    ----------
    Hugging Face Transformers, ``apply_rotary_pos_emb``.
    """
    return 2 * _of(shard, elements / 2, 2, 1, 2, 2, 3)


def _passes(shard: Shard, *each: int) -> tuple[Kernel, ...]:
    """Passes over the residual stream of this rank, by bytes an element."""
    elements = shard.rows * shard.model.hidden
    return tuple(memory_pass(nbytes * elements, dtype=shard.recipe.activations) for nbytes in each)


def _of(shard: Shard, elements: float, *times: int) -> tuple[Kernel, ...]:
    """Passes that read and write each element so many times in all."""
    width = shard.width
    return tuple(memory_pass(round(n * width * elements), dtype=shard.recipe.activations) for n in times)
