"""Attention of a rank's own queries with the keys and values of all ranks, gathered before it.

References
----------
Grattafiori et al., Llama 3, 2024, section 3.3.2. NVIDIA Transformer Engine, ``pytorch/attention``,
``AttnFuncWithCPAndKVAllGather``: keys and values are gathered once more in the backward pass.
"""

from __future__ import annotations

from clustersim.workload.layers.core import Core
from clustersim.workload.layers.piece import Piece
from clustersim.workload.op import Collective

__all__ = ["all_gather_backward", "all_gather_forward", "all_gather_workspace"]


def all_gather_forward(core: Core) -> tuple[Piece, ...]:
    """Two all-gathers, then one kernel for both parts of the queries."""
    kernel = core.forward(pairs2=_pairs2(core), queries=core.shard.tokens, keys=_keys(core))
    return (*_both(core, "all_gather", "all-gather {}"), core.piece("forward", kernel, after=(0, 1)))


def all_gather_backward(core: Core) -> tuple[Piece, ...]:
    """The same all-gathers, one kernel, and the sums of the ranks' gradients of keys and values."""
    kernel = core.backward(pairs2=_pairs2(core), queries=core.shard.tokens, keys=_keys(core))
    return (
        *_both(core, "all_gather", "all-gather {} again"),
        core.piece("backward", kernel, after=(0, 1)),
        *_both(core, "reduce_scatter", "reduce-scatter gradients of {}", after=(2,)),
    )


def all_gather_workspace(core: Core) -> tuple[int, int]:
    """Bytes that the passes hold beside what attention on one rank does: keys and values of all, and gradients."""
    whole = core.shard.context.ranks * core.kv_nbytes
    return whole, 2 * whole


def _pairs2(core: Core) -> int:
    context = core.shard.context
    return sum(mask.pairs2(context.spans(mask.num_tokens, context.index)) for mask in core.masks)


def _keys(core: Core) -> int:
    return core.shard.context.ranks * core.shard.tokens


def _both(core: Core, kind: str, name: str, after: tuple[int, ...] = ()) -> tuple[Piece, ...]:
    """One collective over all tokens for the keys and one for the values."""
    features = {"keys": core.kv_heads * core.key_dim, "values": core.kv_heads * core.value_dim}
    return tuple(
        Piece(
            op=Collective(
                name=name.format(what), kind=kind, slot="cp", nbytes=core.shard.width * _keys(core) * columns, axis="cp"
            ),
            after=after,
        )
        for what, columns in features.items()
    )
