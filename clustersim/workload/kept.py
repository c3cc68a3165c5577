"""A tensor that is kept from the forward to the backward pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Kept", "kept_nbytes"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor that the backward pass of a layer needs.

    Parameters
    ----------
    name : str
    block : str
        kind of the block whose backward pass is the last to read it; ``input`` is the layer's own input
    nbytes : int
        [B]
    part : str
        what computes it again by itself, of :data:`clustersim.workload.recompute.MODULES`; empty: only the whole layer
    """

    name: str
    block: str
    nbytes: int
    part: str = ""


def kept_nbytes(tensors: Iterable[Kept], part: str | None = None) -> int:
    """Bytes of all tensors, or of those of one part [B]."""
    return sum(tensor.nbytes for tensor in tensors if part in (None, tensor.part))
