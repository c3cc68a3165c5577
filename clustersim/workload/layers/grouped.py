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
    """The same product for several experts in one grouped launch.

    Its tiles are dealt to the device together. FLOP and bytes are those of all experts. As rows of each the mean
    counts: few tokens fill few rows of a tile, and what unequal shares leave unfilled is not told apart. What is cast
    is cast in one pass over all tokens. A product for each expert by itself takes the device no longer, since several
    streams keep it filled; casts of each then follow one another, after a search for the largest value where the
    format has one scale a tensor.

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
    shard = replace(shard, fusion=(*shard.fusion, "gradients"))  # as Transformer Engine's grouped products do
    if not sum(tokens):
        return ()
    casts = product(shard, features_in, features_out, tokens=sum(tokens))[:-1] if cast else ()
    shares = [(product(shard, features_in, features_out, tokens=n)[-1], k) for n, k in Counter(tokens).items() if n]
    num_experts = sum(count for _, count in shares)
    each = shard.expert_kernels == "each"
    mean = product(shard, features_in, features_out, tokens=-(-sum(tokens) // num_experts))[-1]
    together = replace(
        mean,
        flops=sum(count * one.flops for one, count in shares),
        nbytes=sum(count * one.nbytes for one, count in shares),
        read_back=sum(count * one.read_back for one, count in shares),
        batch=num_experts,
        looped=num_experts - 1 if each else 0,
    )
    quantisation = shard.recipe.quantisation
    if each and quantisation is not None and not quantisation.together:
        casts = tuple(_cut(one, num_experts * (1 + quantisation.searches)) for one in casts)
    return (*casts, together)


def _cut(cast: Kernel, count: int) -> Kernel:
    """The pass over all tokens as ``count`` kernels."""
    return replace(cast, nbytes=-(-cast.nbytes // count), count=count, looped=count - 1)
