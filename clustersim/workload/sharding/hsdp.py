"""HSDP: weights split over neighbours, and the splits repeated."""

from __future__ import annotations

from dataclasses import replace

from clustersim.workload.sharding.movement import Movement, reduction
from clustersim.workload.sharding.sharding import Sharding
from clustersim.workload.sharding.zero import zero

__all__ = ["hsdp"]


def hsdp(
    ranks: int,
    *,
    inner: int,
    weight: int,
    gradient: int,
    prefetch: int = 1,
    keeps: bool = False,
    each: bool = True,
    reduced: int | None = None,
    bounded: bool = True,
    copies: bool = False,
    flat: bool = False,
) -> Sharding:
    """ZeRO-3 inside groups of ``inner`` ranks; the shards' gradients are summed over the groups.

    The all-reduce has process groups and a stream of its own, so it runs beside the next reduce-scatter, as in PyTorch.

    Parameters
    ----------
    ranks : int
        a multiple of ``inner``
    inner : int
        ranks that share one copy
    weight, gradient, prefetch, keeps, each, reduced, bounded, copies, flat
        as in :func:`clustersim.workload.sharding.zero.zero`

    References
    ----------
    Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, 2023, section 3.2.2.
    """
    inner = min(inner, ranks)
    if inner == ranks:
        return zero(
            ranks,
            stage=3,
            weight=weight,
            gradient=gradient,
            prefetch=prefetch,
            keeps=keeps,
            each=each,
            reduced=reduced,
            bounded=bounded,
            copies=copies,
            flat=flat,
        )
    gather = Movement(kind="all_gather", what="weights", nbytes=weight, over="inner")
    scattered = reduction("reduce_scatter", gradient=gradient, reduced=reduced, over="inner", kept=inner)
    scattered = replace(scattered, before=0) if copies or flat else scattered
    summed = reduction(
        "all_reduce", gradient=gradient, reduced=reduced, over="outer" if inner > 1 else "all", share=inner
    )
    return Sharding(
        name="hsdp",
        weights=inner,
        gradients=inner if each else 1,
        optimizer=inner,
        gather=(gather,) if inner > 1 else (),
        gather_again=(gather,) if inner > 1 and not keeps else (),
        reduce=(scattered, summed) if inner > 1 else (summed,),
        inner=inner,
        each_micro_batch=each,
        keeps=keeps,
        prefetch=prefetch,
        bounded=bounded,
        copies=copies,
        flat=flat,
    )
