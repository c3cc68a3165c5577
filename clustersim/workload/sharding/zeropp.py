"""ZeRO++: ZeRO-3 with quantised gathers, weights kept once more in each node, a quantised reduction in two hops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from clustersim.workload.sharding.movement import Movement
from clustersim.workload.sharding.sharding import Sharding
from clustersim.workload.sharding.zero import zero

__all__ = ["PARTS", "Part", "zeropp"]

Part = Literal["qwz", "hpz", "qgz"]
PARTS: tuple[Part, ...] = get_args(Part)

_SCALE = 4 / 4096
"""Bytes of scales a quantised element: fp32, one a group. DeepSpeed's groups have 4,000 to 8,000; 4,096 assumed."""
_INT8, _INT4 = 1 + _SCALE, 0.5 + _SCALE


def zeropp(
    ranks: int,
    *,
    inner: int,
    parts: Sequence[str] = PARTS,
    weight: int,
    gradient: int,
    reduced: int | None = None,
    prefetch: int = 1,
    bounded: bool = True,
) -> Sharding:
    """ZeRO-3 with any of three parts.

    ``qwz``
        gathers int8 weights. Each rank quantises its shard and dequantises what it gathered
    ``hpz``
        a second copy of the weights, split over the ``inner`` ranks of a node, is kept from the forward pass on; the
        backward pass gathers from it inside the node
    ``qgz``
        gradients go int4 by all-to-all, first inside nodes, then between them; after each hop they are dequantised and
        added up

    With P parameters of 2 bytes and M = 2·P, a node sends M + M + M to others under ZeRO-3 and M/2 + 0 + M/4 here, but
    for the scales and for the part that stays. On one node ``hpz`` and ``qgz`` have nothing to do.

    Parameters
    ----------
    ranks : int
        a multiple of ``inner``
    inner : int
        of these on one node, from 2
    parts : Sequence[{"qwz", "hpz", "qgz"}]
    weight, gradient, reduced, prefetch, bounded
        as in :func:`clustersim.workload.sharding.zero.zero`

    References
    ----------
    Wang et al., ZeRO++: Extremely Efficient Collective Communication for Giant Model Training, 2023, sections 3 and 4.
    DeepSpeed, ``runtime/zero/partition_parameters.py`` (the second copy is gathered quantised too) and
    ``runtime/comm/coalesced_collectives.py`` (one node reduces by reduce-scatter).
    """
    plain = zero(ranks, stage=3, weight=weight, gradient=gradient, reduced=reduced, prefetch=prefetch, bounded=bounded)
    if ranks == 1:
        return plain
    inner = min(inner, ranks)
    apart = inner < ranks
    gather = _gather(ranks, weight=weight, quantised="qwz" in parts)
    again, secondary = gather, 0.0
    if "hpz" in parts and apart:
        again = replace(_gather(inner, weight=weight, quantised="qwz" in parts), over="inner")
        secondary = weight / inner
        gather = replace(gather, after=gather.after + 2 * secondary)
    return replace(
        plain,
        name="zero++",
        gather=(gather,),
        gather_again=(again,),
        reduce=_two_hops(inner, ranks // inner, gradient=gradient) if "qgz" in parts and apart else plain.reduce,
        inner=inner if apart else 1,
        extra_weights=secondary,
    )


def _gather(ranks: int, *, weight: int, quantised: bool) -> Movement:
    if not quantised:
        return Movement(kind="all_gather", what="weights", nbytes=weight)
    return Movement(
        kind="all_gather", what="weights", nbytes=_INT8, before=(weight + _INT8) / ranks, after=_INT8 + weight
    )


def _two_hops(inner: int, outer: int, *, gradient: int) -> tuple[Movement, Movement]:
    """Inside the node, then between nodes for the 1/inner left; the first hop ends with the second's quantisation."""
    inside = Movement(
        kind="all_to_all",
        what="gradients",
        nbytes=_INT4,
        over="inner",
        before=gradient + _INT4,
        after=_INT4 + _INT4 / inner,
    )
    between = Movement(
        kind="all_to_all",
        what="gradients",
        nbytes=_INT4,
        over="outer",
        share=inner,
        after=_INT4 + gradient / outer,
    )
    return inside, between
