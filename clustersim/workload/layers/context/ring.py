"""Attention with keys and values that go round a ring of ranks, a block a step, each beside the kernel before it.

At step i a rank holds the block of the rank i places before it, and passes it on to the next while its own queries meet
it. The backward pass goes the other way round, from the block that the forward pass ended with, and the gradient of
each block travels one step behind it and comes home last.

References
----------
Liu et al., Ring Attention, 2023, section 3. NVIDIA Transformer Engine, ``pytorch/attention``,
``AttnFuncWithCPAndKVP2P``: order and contents of the messages, no more than one step ahead of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.core import Core
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.layers.piece import Piece
from clustersim.workload.op import Collective

__all__ = ["RingBlock", "ring_backward", "ring_block", "ring_forward", "ring_workspace"]


def ring_forward(core: Core) -> tuple[Piece, ...]:
    """A send and a receive beside every kernel but the last; then the partial outputs are merged.

    A message waits for the one before, which brought what it sends, and for the kernel of the step before last.
    """
    ranks = core.shard.context.ranks
    pieces: list[Piece] = []
    kernels: list[int] = []
    here: tuple[int, ...] = ()
    blocks = [ring_block(core, step) for step in range(ranks)]
    for step, block in enumerate(blocks):
        arrived = here
        if step < ranks - 1:
            pieces += _messages("forward", core.kv_nbytes, "keys and values", (*arrived, *kernels[-2:-1]))
            here = (len(pieces) - 2, len(pieces) - 1)
        if block is not None:
            pieces.append(core.piece("forward", block.forward(core), after=arrived))
        kernels.append(len(pieces) - 1 if block is not None else kernels[-1])
    first, *others = [block for block in blocks if block is not None]
    merges = (_scale(core, first), *(_merge(core, block) for block in others))
    return (*pieces, core.piece("merge forward", *merges, after=(kernels[-1],)))


def ring_backward(core: Core) -> tuple[Piece, ...]:
    """Blocks come back in reverse order; the gradient of a block is added to what came with it and sent on.

    The first message is a block, the last a gradient, those between are both.
    """
    ranks = core.shard.context.ranks
    pieces: list[Piece] = []
    here: tuple[int, ...] = ()
    summed: tuple[int, ...] = ()
    for step in range(ranks):
        arrived = here
        both = 0 < step < ranks - 1
        what = "keys, values and gradients" if both else "gradients of keys and values" if step else "keys and values"
        pieces += _messages("backward", core.kv_nbytes * (2 if both else 1), what, (*arrived, *summed))
        here = (len(pieces) - 2, len(pieces) - 1)
        block = ring_block(core, ranks - 1 - step)
        if block is None:
            continue
        sums = (_add_queries(core, block),) if summed else ()
        pieces.append(core.piece("backward", block.backward(core), *sums, after=arrived))
        summed = (len(pieces) - 1,)
        if step:
            pieces.append(core.piece("gradient sum", _add_keys(core, block), after=(*summed, *here)))
            summed = (len(pieces) - 1,)
    return tuple(pieces)


def ring_workspace(core: Core) -> tuple[int, int]:
    """Bytes that the passes hold beside what attention on one rank does.

    Forward every block that came and every partial output, until the last is through; backward two buffers for a block
    and its gradient.
    """
    ranks = core.shard.context.ranks
    rows = sum(block.queries for block in (ring_block(core, step) for step in range(ranks)) if block is not None)
    outputs = core.shard.width * rows * core.output_features
    return (ranks - 1) * core.kv_nbytes + outputs, 4 * core.kv_nbytes


@dataclass(frozen=True, slots=True)
class RingBlock:
    """What the queries of a rank meet at one step: twice the pairs, and the rows of queries and of keys."""

    pairs2: int
    queries: int
    keys: int

    def forward(self, core: Core) -> Kernel:
        """The kernel of that step."""
        return core.forward(pairs2=self.pairs2, queries=self.queries, keys=self.keys)

    def backward(self, core: Core) -> Kernel:
        """That of the gradients."""
        return core.backward(pairs2=self.pairs2, queries=self.queries, keys=self.keys)


def ring_block(core: Core, step: int) -> RingBlock | None:
    """The block ``step`` places back on the ring; None where the mask hides all of it.

    Where every rank has a part from the front and one from the back, each pair of ranks has the same work: one meets
    half of the keys with all its queries, the other all of the keys with half of them. Both read as many rows as their
    mean here. Documents are cut so one by one.
    """
    context, tokens = core.shard.context, core.shard.tokens
    n = context.ranks
    if context.method == "ring":
        sent = [context.spans(mask.num_tokens, (context.index - step) % n) for mask in core.masks]
        own = [context.spans(mask.num_tokens, context.index) for mask in core.masks]
        pairs2 = sum(mask.pairs2(q, k) for mask, q, k in zip(core.masks, own, sent, strict=True))
        return RingBlock(pairs2, tokens, tokens) if pairs2 else None
    pairs2 = -(-core.pairs2 // n**2)
    rows = tokens if step == 0 or not all(mask.causal for mask in core.masks) else 3 * tokens // 4
    return RingBlock(pairs2, rows, rows)


def _messages(side: str, nbytes: int, what: str, after: tuple[int, ...]) -> list[Piece]:
    """To the next rank on the ring and from the one before."""
    ends = (("send", "out"), ("recv", "in"))
    names = {"send": "send", "recv": "receive"}
    return [
        Piece(
            op=Collective(name=f"{names[kind]} {what}", kind=kind, slot=f"cp_{side}_{end}", nbytes=nbytes, axis="cp"),
            after=after,
        )
        for kind, end in ends
    ]


def _scale(core: Core, block: RingBlock) -> Kernel:
    """Scale the first partial output: reads and writes it, and reads the statistics of its rows, before and in all."""
    per_row = 2 * core.shard.width * core.output_features + 2 * 4 * core.heads
    return memory_pass(block.queries * per_row, dtype=core.shard.recipe.activations)


def _merge(core: Core, block: RingBlock) -> Kernel:
    """Scale another one and add it: reads both, writes the sum, and reads the statistics."""
    per_row = 3 * core.shard.width * core.output_features + 2 * 4 * core.heads
    return memory_pass(block.queries * per_row, dtype=core.shard.recipe.activations)


def _add_queries(core: Core, block: RingBlock) -> Kernel:
    nbytes = 3 * core.shard.width * block.queries * core.query_features
    return memory_pass(nbytes, dtype=core.shard.recipe.activations)


def _add_keys(core: Core, block: RingBlock) -> Kernel:
    nbytes = 3 * core.shard.width * block.keys * core.kv_features
    return memory_pass(nbytes, dtype=core.shard.recipe.activations)
