"""Grouped products: one linear layer for each expert, over the tokens that it got."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.shard import Shard

__all__ = ["grouped"]


def grouped(
    product: Callable[..., tuple[Kernel, ...]],
    shard: Shard,
    features_in: int,
    features_out: int,
    tokens: Sequence[int],
    *,
    cast: bool = True,
) -> tuple[Kernel, ...]:
    """The same product for several experts in grouped launches, one for each number of tokens that experts have.

    Tiles of all experts of a launch are dealt to the device together, but few tokens still fill few rows of a tile.
    What is cast is cast in one pass over all tokens.

    Parameters
    ----------
    product : callable
        :func:`~clustersim.workload.layers.kernels.linear`, or one of its gradients
    shard : Shard
    features_in, features_out : int
        of each expert's matrix
    tokens : Sequence[int]
        of each expert
    cast : bool
        a recipe that quantises casts the operand first; False where it came that way
    """
    if not sum(tokens):
        return ()
    casts = product(shard, features_in, features_out, tokens=sum(tokens))[:-1] if cast else ()
    launches = sorted(Counter(n for n in tokens if n).items())
    return (
        *casts,
        *(_together(product(shard, features_in, features_out, tokens=n)[-1], count) for n, count in launches),
    )


def _together(product: Kernel, count: int) -> Kernel:
    """``count`` equal products in one launch."""
    return replace(product, flops=count * product.flops, nbytes=count * product.nbytes, batch=count)
