"""Context parallelism: how the tokens of a sequence are spread over ranks, and how attention reaches across."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from clustersim.workload.mask import Mask, Span

__all__ = ["METHODS", "Context", "Method", "places"]

Method = Literal["zigzag", "ring", "all_gather", "gathered_ring", "ulysses", "hybrid"]

METHODS: Mapping[Method, str] = {
    "zigzag": "keys and values go round a ring; each rank has a part from the front and one from the back",
    "ring": "keys and values go round a ring; each rank has one part, so that later ranks have more to do",
    "all_gather": "keys and values are gathered whole; each rank has a part from the front and one from the back",
    "gathered_ring": "keys and values are gathered whole and met block by block, gradients go round a ring in fp32",
    "ulysses": "all-to-alls turn parts of the sequence with all heads into the whole sequence with some heads",
    "hybrid": "ulysses inside groups of ranks, zigzag over the groups",
}
"""Ways to compute attention over a sequence that several ranks share."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """A rank's place among those that share a sequence.

    Parameters
    ----------
    ranks : int
        that share it
    method : str
        of :data:`METHODS`
    ulysses : int
        ranks of a group that exchange heads for tokens; all of them, or neighbours among them
    index : int
        position; of ranks that all do the same work, the first

    Raises
    ------
    ValueError
        when ``ulysses`` does not divide ``ranks``, or ``index`` is not a position
    """

    ranks: int = 1
    method: Method = "zigzag"
    ulysses: int = 1
    index: int = 0

    def __post_init__(self) -> None:
        if self.ranks < 1 or self.ulysses < 1 or self.ranks % self.ulysses:
            raise ValueError(f"ulysses: {self.ulysses} must divide ranks {self.ranks}")
        if not 0 <= self.index < self.ranks:
            raise ValueError(f"index: {self.index} must be from 0 to {self.ranks - 1}")

    @property
    def across(self) -> int:
        """Ranks that still share the sequence when heads have been exchanged."""
        return self.ranks // self.ulysses

    @property
    def keeps_twice(self) -> bool:
        """The output is kept as the kernel gave it, and as the next matrix reads it, when heads have been exchanged."""
        return self.ulysses > 1 and self.across == 1

    @property
    def exchanged(self) -> Context:
        """Where the rank stands then."""
        return replace(self, ranks=self.across, ulysses=1, index=self.index // self.ulysses)

    def spans(self, num_tokens: int, index: int) -> tuple[Span, ...]:
        """The tokens of the rank at a position.

        Parameters
        ----------
        num_tokens : int
            of the sequence; a multiple of ``ranks``, and of twice as many where each has two parts
        index : int

        References
        ----------
        Megatron-Core, ``utils.get_batch_on_this_cp_rank``, and Grattafiori et al., Llama 3, 2024, section 3.3.2: of
        2·cp parts rank i has i and 2·cp - 1 - i.
        """
        if self.method == "ring":
            size = num_tokens // self.ranks
            return ((index * size, (index + 1) * size),)
        size = num_tokens // (2 * self.ranks)
        back = 2 * self.ranks - 1 - index
        return ((index * size, (index + 1) * size), (back * size, (back + 1) * size))

    def work(self, mask: Mask, index: int) -> tuple[int, ...]:
        """Twice the pairs of tokens that the rank at a position computes, step by step, other things being equal."""
        queries = self.spans(mask.num_tokens, index)
        if self.method == "all_gather":
            return (mask.pairs2(queries),)
        blocks = (self.spans(mask.num_tokens, (index - step) % self.ranks) for step in range(self.ranks))
        return tuple(mask.pairs2(queries, keys) for keys in blocks)


def places(context: Context, masks: Iterable[Mask]) -> tuple[Context, ...]:
    """The place of every rank, or a single one where all do the same work under these masks.

    Parts from front and back balance a causal mask; exchanged heads any. Around a ring of such parts every document is
    cut for itself, so that each step of each rank has the same work.
    """
    if context.ranks == 1 or context.method not in ("ring", "all_gather"):
        return (context,)
    positions = range(context.ranks)
    if all(len({context.work(mask, index) for index in positions}) == 1 for mask in masks):
        return (context,)
    return tuple(replace(context, index=index) for index in positions)
