"""Attention with gathered keys and values that queries meet block by block, as PyTorch's context parallelism has it.

Keys and values are put into one buffer and gathered beside the kernel of a rank's own block. Each other block is a
kernel of its own, whose output is merged with what there is in fp32. In the backward pass they are gathered again; the
gradients of a block, in fp32, go round a ring of ranks, each adding its own, and come home last.

References
----------
PyTorch, ``torch/distributed/tensor/experimental/_attention.py``: ``_templated_ring_attention`` and its backward pass,
``_SDPAMerger``, ``_AllGatherRotater`` for keys and values (``_ContextParallelOptions.rotate_method``) and
``_AllToAllRotater`` for gradients, ``convert_to_f32``. Element-wise operators are counted as a compiler fuses them.
"""

from __future__ import annotations

from functools import cache

from clustersim.hardware.kernel import Kernel
from clustersim.workload.exchange import Exchange
from clustersim.workload.layers.context.ring import RingBlock, ring_block
from clustersim.workload.layers.core import Core
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.layers.piece import Piece
from clustersim.workload.op import Collective

__all__ = ["gathered_ring_backward", "gathered_ring_forward", "gathered_ring_workspace"]

_WIDE = 4
"""Bytes of an element of partial outputs and gradients."""


def gathered_ring_forward(core: Core) -> tuple[Piece, ...]:
    """Own block beside the gathering, then the others with a merge each, then the cast of the sum."""
    own, *others = _blocks(core)
    kernels = [kernel for block in others for kernel in (block.forward(core), _merge(core, block))]
    return (
        *_gather(core, "keys and values"),
        core.piece("forward", own.forward(core), after=(0,)),
        core.piece("forward", *kernels, _cast(core, core.output_features), after=(1, 2)),
    )


def gathered_ring_backward(core: Core) -> tuple[Piece, ...]:
    """A kernel for each block; its gradients are added to those that came, in one buffer, and sent on."""
    pieces = [*_gather(core, "keys and values again")]
    came: tuple[int, ...] = ()
    for step, block in enumerate(_blocks(core)):
        here = (1,) if step else (0,)
        pieces.append(core.piece("backward", block.backward(core), _add_queries(core, block), after=here))
        pieces.append(core.piece("gradient sum", *_add_keys(core, block), after=(len(pieces) - 1, *came)))
        pieces.append(Piece(op=_pass_on(core), after=(len(pieces) - 1,)))
        came = (len(pieces) - 1,)
    casts = (_cast(core, core.query_features), _cast(core, core.kv_features))
    return (*pieces, core.piece("gradient cast", *casts, after=came))


def gathered_ring_workspace(core: Core) -> tuple[int, int]:
    """Bytes held beside what attention on one rank does.

    Forward keys and values of all, and two partial outputs; backward the former, two buffers of their gradients and
    the queries'.
    """
    rows, whole = core.shard.tokens, core.shard.context.ranks * core.kv_nbytes
    wide = _WIDE * rows
    return whole + 2 * wide * core.output_features, whole + wide * (2 * core.kv_features + core.query_features)


def _blocks(core: Core) -> list[RingBlock]:
    """The rank's own block first."""
    blocks = (ring_block(core, step) for step in range(core.shard.context.ranks))
    return [block for block in blocks if block is not None]


def _gather(core: Core, what: str) -> tuple[Piece, Piece]:
    """Keys and values into one buffer, and the buffers of all ranks."""
    copy = memory_pass(2 * core.kv_nbytes, dtype=core.shard.recipe.activations)
    nbytes = core.shard.context.ranks * core.kv_nbytes
    op = Collective(name=f"all-gather {what}", kind="all_gather", slot="cp", nbytes=nbytes, axis="cp")
    return core.piece(f"copy of {what}", copy, after=()), Piece(op=op, after=(0,))


def _merge(core: Core, block: RingBlock) -> Kernel:
    """Reads the sum so far and a partial output of w bytes, writes the sum; statistics likewise, of one column."""
    per_row = (2 * _WIDE + core.shard.width) * core.output_features + 3 * _WIDE * core.heads
    return memory_pass(block.queries * per_row, dtype="fp32")


def _add_queries(core: Core, block: RingBlock) -> Kernel:
    return memory_pass((2 * _WIDE + core.shard.width) * block.queries * core.query_features, dtype="fp32")


def _add_keys(core: Core, block: RingBlock) -> tuple[Kernel, Kernel]:
    """The sum over the rows that the kernel gave, then all of it into the buffer that is sent."""
    added = (2 * _WIDE + core.shard.width) * block.keys * core.kv_features
    return memory_pass(added, dtype="fp32"), memory_pass(2 * _wide_nbytes(core), dtype="fp32")


def _cast(core: Core, features: int) -> Kernel:
    return memory_pass((_WIDE + core.shard.width) * core.shard.tokens * features, dtype="fp32")


def _pass_on(core: Core) -> Collective:
    """To the next rank on the ring, an all-to-all with nothing for the others."""
    ranks = core.shard.context.ranks
    return Collective(
        name="exchange gradients of keys and values",
        kind="all_to_all",
        slot="cp",
        nbytes=_wide_nbytes(core),
        axis="cp",
        algorithm=_to_the_next(ranks),
    )


def _wide_nbytes(core: Core) -> int:
    return _WIDE * core.shard.tokens * core.kv_features


@cache
def _to_the_next(num_ranks: int) -> Exchange:
    return Exchange(share=[[float((i + 1) % num_ranks == j) for j in range(num_ranks)] for i in range(num_ranks)])
