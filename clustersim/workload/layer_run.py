"""Layers that follow one another and are equal."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.sublayer import Sublayer

__all__ = ["LayerRun"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerRun:
    """Consecutive equal layers.

    Parameters
    ----------
    first, count : int
        number of the first, from 0; how many
    sublayers : tuple[Sublayer, ...]
        of one of them, in order
    window : int, optional
        tokens that a token attends to; None: the whole sequence, or no attention
    """

    first: int
    count: int
    sublayers: tuple[Sublayer, ...]
    window: int | None

    @property
    def kind(self) -> str:
        """What one of them is, in words."""
        return " + ".join(self.sublayers) + ("" if self.window is None else f", window {self.window}")
