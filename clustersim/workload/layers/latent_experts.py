"""The way into the narrower width of latent experts, and back: one matrix each, whole on every rank."""

from __future__ import annotations

from collections.abc import Callable

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept
from clustersim.workload.layers.kernels import linear, linear_input_gradient, linear_weight_gradient
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard

__all__ = [
    "latent_backward",
    "latent_forward",
    "latent_kept",
    "latent_matrices",
    "latent_parameters",
    "latent_weight_gradients",
]


def latent_matrices(shard: Shard, experts: Experts) -> tuple[tuple[int, int], ...]:
    """(features in, features out) of the two; none where experts work in the model's own width.

    References
    ----------
    Megatron-Core, ``moe/moe_layer.py``: ``fc1_latent_proj`` before the dispatch, ``fc2_latent_proj`` after the combine,
    both in ``parallel_mode="duplicated"``, over the tokens that a rank holds of the residual stream.
    """
    hidden, latent = shard.model.hidden, experts.latent
    return ((hidden, latent), (latent, hidden)) if latent else ()


def latent_parameters(shard: Shard, experts: Experts) -> int:
    """Weights of both, which every tensor-parallel rank holds."""
    return sum(rows * columns for rows, columns in latent_matrices(shard, experts))


def latent_forward(shard: Shard, experts: Experts, which: int) -> tuple[Kernel, ...]:
    """The product into (0) or out of (1) the latent width."""
    return _product(linear, shard, experts, which)


def latent_backward(shard: Shard, experts: Experts, which: int) -> tuple[Kernel, ...]:
    """The gradient of its input."""
    return _product(linear_input_gradient, shard, experts, which)


def latent_weight_gradients(shard: Shard, experts: Experts) -> tuple[Kernel, ...]:
    """The gradients of both matrices."""
    return tuple(kernel for which in (0, 1) for kernel in _product(linear_weight_gradient, shard, experts, which))


def latent_kept(shard: Shard, experts: Experts) -> tuple[Kept, ...]:
    """The sum of experts' results, which the way back reads; what the way in reads is kept for the router too."""
    if not experts.latent:
        return ()
    nbytes = shard.of_module("latent").recipe.activation_operand.nbytes(shard.rows * experts.latent)
    return (Kept("sum of latent results", "experts", nbytes),)


def _product(
    product: Callable[..., tuple[Kernel, ...]], shard: Shard, experts: Experts, which: int
) -> tuple[Kernel, ...]:
    found = latent_matrices(shard, experts)
    return product(shard.of_module("latent"), *found[which], tokens=shard.rows) if found else ()
