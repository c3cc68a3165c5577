"""Attention over a window of the last tokens only."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.shape.counts import require_counts

__all__ = ["SlidingWindow"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SlidingWindow:
    """How far a token looks back, and in which layers.

    Layer i, counted from 0, attends to the whole sequence where i < ``first_full``, or where ``full_every`` is not 0
    and divides i + 1.

    Parameters
    ----------
    tokens : int
        that a token attends to, itself included
    full_every, first_full : int
        which layers attend to the whole sequence, as above (Gemma-2 and gpt-oss: every second)

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    tokens: int
    full_every: int = 0
    first_full: int = 0

    def __post_init__(self) -> None:
        require_counts(self, "tokens", most=2**30)
        require_counts(self, "full_every", "first_full", least=0)
        if self.full_every == 1:
            raise ValueError("full_every: 1 must be 0 or at least 2: no layer would have the window")

    def slides(self, layer: int) -> bool:
        """Whether layer ``layer``, counted from 0, has the window."""
        return layer >= self.first_full and not (self.full_every and (layer + 1) % self.full_every == 0)
