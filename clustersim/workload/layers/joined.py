"""Pieces written apart, put one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clustersim.workload.layers.piece import Piece

__all__ = ["joined"]


def joined(*parts: Sequence[Piece]) -> tuple[Piece, ...]:
    """Parts of a pass as one; positions that a piece waits for are counted within its part.

    What waits for nothing there waits for the last piece of the part before.
    """
    found: list[Piece] = []
    for part in parts:
        offset = len(found)
        for piece in part:
            after = piece.after
            if after == () and offset:
                after = (offset - 1,)
            elif after is not None:
                after = tuple(offset + n for n in after)
            found.append(replace(piece, after=after))
    return tuple(found)
