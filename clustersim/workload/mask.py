"""The mask of attention: which tokens of a sequence see which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

__all__ = ["Mask", "Span"]

Span = tuple[int, int]
"""Tokens of a sequence from the first up to, and without, the second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mask:
    """What queries see of the keys of one sequence.

    Pairs of tokens are counted as an area, so that a causal mask over s tokens lets through s²/2 of s². Twice the area
    is a whole number.

    Parameters
    ----------
    documents : tuple[int, ...]
        tokens of each document of the sequence; tokens of different documents do not see each other
    causal : bool
        a token sees those before it
    window : int, optional
        a token sees the last so many tokens, itself included; None: all

    Raises
    ------
    ValueError
        when a document is empty, or the window
    """

    documents: tuple[int, ...]
    causal: bool = True
    window: int | None = None

    def __post_init__(self) -> None:
        if not self.documents or min(self.documents) < 1:
            raise ValueError(f"documents: {self.documents} must be at least one, each of at least 1 token")
        if self.window is not None and self.window < 1:
            raise ValueError(f"window: {self.window} must be at least 1")

    @property
    def num_tokens(self) -> int:
        """Of the sequence."""
        return sum(self.documents)

    def pairs2(self, queries: Sequence[Span] | None = None, keys: Sequence[Span] | None = None) -> int:
        """Twice the pairs that are let through.

        Parameters
        ----------
        queries, keys : Sequence[Span], optional
            of these tokens; None: of all
        """
        whole = [(0, self.num_tokens)]
        return sum(
            self._in_rectangle(*query, *key)
            for document in self._spans()
            for query in _within(whole if queries is None else queries, document)
            for key in _within(whole if keys is None else keys, document)
        )

    def _spans(self) -> Iterator[Span]:
        yield from pairwise(accumulate(self.documents, initial=0))

    def _in_rectangle(self, q0: int, q1: int, k0: int, k1: int) -> int:
        if not self.causal:
            return 2 * (q1 - q0) * (k1 - k0)
        seen = _below(q0, q1, k0, k1)
        if self.window is None:
            return seen
        return seen - _below(q0 - self.window, q1 - self.window, k0, k1)


def _within(spans: Sequence[Span], limits: Span) -> Iterator[Span]:
    for first, last in spans:
        first, last = max(first, limits[0]), min(last, limits[1])
        if first < last:
            yield first, last


def _below(q0: int, q1: int, k0: int, k1: int) -> int:
    """Twice the area of k ≤ q inside of q0 ≤ q < q1 and k0 ≤ k < k1."""
    return _square(q1 - k0) - _square(q0 - k0) - _square(q1 - k1) + _square(q0 - k1)


def _square(x: int) -> int:
    return max(0, x) ** 2
