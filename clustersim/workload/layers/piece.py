"""A piece: one op of a block's pass, and what it waits for inside the block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clustersim.workload.layers.product import Product
from clustersim.workload.op import Collective, Compute

__all__ = ["Piece", "fused", "serial"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """One op of a pass through a block.

    Parameters
    ----------
    op : Compute or Collective
    after : tuple[int, ...], optional
        positions of earlier pieces that it waits for; None: the one before it. Ops of one stream keep their order in
        any case
    weight : bool
        computes gradients of weights: nothing but the optimizer waits for it, so a schedule may put it off
    product : Product, optional
        all that the op is, where its tokens may come or go in parts
    """

    op: Compute | Collective
    after: tuple[int, ...] | None = None
    weight: bool = False
    product: Product | None = None


def serial(*ops: Compute | Collective) -> tuple[Piece, ...]:
    """Ops one after the other."""
    return tuple(Piece(op=op) for op in ops)


def fused(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Kernels that follow one another without a collective between them as one op, which has the name of the first.

    A piece that computes gradients of weights becomes part of the pass that it stands in.
    """
    found: list[Piece] = []
    place: list[int] = []
    for piece in pieces:
        after = None if piece.after is None else tuple(sorted({place[n] for n in piece.after}))
        before = found[-1].op if found else None
        if after is None and isinstance(piece.op, Compute) and isinstance(before, Compute):
            named = found[-1] if not found[-1].weight else piece
            joined = replace(before, name=named.op.name, kernels=before.kernels + piece.op.kernels)
            found[-1] = replace(found[-1], op=joined, weight=found[-1].weight and piece.weight, product=None)
        else:
            found.append(replace(piece, after=after))
        place.append(len(found) - 1)
    return tuple(found)
