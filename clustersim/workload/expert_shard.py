"""One rank's share of the experts of a layer, and of the tokens that go to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from clustersim.workload.exchange import Exchange

__all__ = ["ExpertShard"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpertShard:
    """Experts of one rank, and copies of tokens: a token has one for each expert that it meets.

    Parameters
    ----------
    ep, etp : int
        ranks over which the experts are spread; that share each of them, each having a part of its width
    index : int
        position among the ep ranks
    tokens : tuple[int, ...]
        copies that each expert of this rank works on, those from all ep · etp ranks
    sent : int
        copies that this rank sends, its own included
    dropless : bool
        how many copies go where is not known before, so that ranks tell each other first
    gathers_maps : bool
        what they tell is the experts of every token, and each finds the places of all tokens in it
    there, back : str or Exchange, optional
        how the copies are sent, and their results; None: as any all-to-all
    once : bool
        copies are made where the experts are, not before they are sent
    chunks : int
        parts of the micro-batch that are sent one after the other
    overlap_shared : bool
        shared experts work while tokens are on their way
    fp8_dispatch : bool
        tokens are sent in the format in which the experts multiply them
    fp8_activation_input : bool
        what the activations read is kept in that format
    """

    ep: int
    etp: int
    index: int
    tokens: tuple[int, ...]
    sent: int
    dropless: bool
    gathers_maps: bool
    there: str | Exchange | None
    back: str | Exchange | None
    once: bool
    chunks: int
    overlap_shared: bool
    fp8_dispatch: bool
    fp8_activation_input: bool

    @property
    def received(self) -> int:
        """Copies that the experts of this rank work on."""
        return sum(self.tokens)

    def parts(self) -> Iterator[ExpertShard]:
        """The share of each chunk; they add up to the whole."""
        for k in range(self.chunks):
            tokens = tuple(_part(n, k, self.chunks) for n in self.tokens)
            yield replace(self, tokens=tokens, sent=_part(self.sent, k, self.chunks))


def _part(whole: int, k: int, parts: int) -> int:
    return whole // parts + (k < whole % parts)
