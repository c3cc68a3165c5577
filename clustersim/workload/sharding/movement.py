"""A movement: one collective that a strategy makes with the weights or gradients of a parameter group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.op import Collective, Compute

__all__ = ["Movement", "Over", "ops_of", "reduction"]

Over = Literal["all", "inner", "outer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Movement:
    """One collective, in bytes a parameter.

    Parameters
    ----------
    kind : str
        ``all_gather``, ``reduce_scatter``, ``all_reduce``, ``all_to_all``
    what : str
        for the trace: ``weights``, ``gradients``
    nbytes : float
        payload of a parameter [B], counted as :data:`clustersim.collective.traffic.Algorithm` says
    over : {"all", "inner", "outer"}
        all ranks that hold these weights; neighbours among them; those at one place among their neighbours
    share : int
        only one in so many parameters takes part
    before, after : float
        HBM bytes a parameter that take part read and written around it: quantise, dequantise, add [B]
    """

    kind: Literal["all_gather", "reduce_scatter", "all_reduce", "all_to_all"]
    what: str
    nbytes: float
    over: Over = "all"
    share: int = 1
    before: float = 0.0
    after: float = 0.0


def reduction(
    kind: Literal["reduce_scatter", "all_reduce"],
    *,
    gradient: int,
    reduced: int | None,
    over: Over = "all",
    share: int = 1,
    kept: int = 1,
) -> Movement:
    """A sum of gradients, cast before and after where it is done in another format than they are kept in.

    Parameters
    ----------
    kind : {"reduce_scatter", "all_reduce"}
    gradient : int
        bytes of a gradient as it is kept [B]
    reduced : int, optional
        as it is reduced [B]; None: as it is kept
    over, share
        as of :class:`Movement`
    kept : int
        of so many parameters that take part a rank keeps the sum of one
    """
    width = gradient if reduced is None else reduced
    cast = gradient + width if width != gradient else 0
    return Movement(kind=kind, what="gradients", nbytes=width, over=over, share=share, before=cast, after=cast / kept)


def ops_of(
    movements: Sequence[Movement], parameters: int, *, axis: str, ranks: int
) -> tuple[Compute | Collective, ...]:
    """The ops of movements, one after the other.

    Parameters
    ----------
    movements : Sequence[Movement]
    parameters : int
        of the group, on this rank when nothing is split
    axis : str
        ``dp``, or ``edp`` for experts: slots are ``dp``, ``dp_inner`` and ``dp_outer``
    ranks : int
        that hold these weights; parameters are padded to a multiple of it, as flat buffers are
    """
    padded = -(-parameters // ranks) * ranks
    ops: list[Compute | Collective] = []
    for move in movements:
        taking_part = -(-padded // move.share)
        slot = axis if move.over == "all" else f"{axis}_{move.over}"
        name = f"{move.kind.replace('_', '-')} {move.what}"
        for verb, nbytes in (("pack", move.before), ("", move.nbytes), ("unpack", move.after)):
            amount = math.ceil(nbytes * taking_part)
            if not verb:
                ops.append(Collective(name=name, kind=move.kind, slot=slot, nbytes=amount, axis="dp"))
            elif amount:
                kernels = (memory_pass(amount, dtype="bf16"),)
                ops.append(Compute(name=f"{verb} {move.what}", kind="quantise", kernels=kernels))
    return tuple(ops)
