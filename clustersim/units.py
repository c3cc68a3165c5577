"""Units at the edge, SI inside: ``"400 Gb/s"`` in a card is ``5e10`` [B/s] in the code.

A field of a dataclass names its unit once, as ``Annotated[float, Unit("B/s")]``; the loader, the documentation and
``show`` read that one marker. The package computes with bare floats and ints in s, B, B/s, FLOP and FLOP/s.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Unit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """The SI unit of an annotated number: one of s, B, B/s, FLOP, FLOP/s, W, Hz, or empty for a pure number."""

    symbol: str
