"""The passes of an attention core over a sequence that several ranks share, in the way that its shard says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from clustersim.workload.layers.context.all_gather import (
    all_gather_backward,
    all_gather_forward,
    all_gather_workspace,
)
from clustersim.workload.layers.context.gathered_ring import (
    gathered_ring_backward,
    gathered_ring_forward,
    gathered_ring_workspace,
)
from clustersim.workload.layers.context.local import local_backward, local_forward
from clustersim.workload.layers.context.ring import ring_backward, ring_forward, ring_workspace
from clustersim.workload.layers.context.ulysses import exchange, exchange_back, exchange_workspace
from clustersim.workload.layers.core import Core
from clustersim.workload.layers.joined import joined
from clustersim.workload.layers.piece import Piece

__all__ = ["core_backward", "core_forward", "core_workspace"]


class _Way(NamedTuple):
    forward: Callable[[Core], tuple[Piece, ...]]
    backward: Callable[[Core], tuple[Piece, ...]]
    workspace: Callable[[Core], tuple[int, int]]


_RING = _Way(ring_forward, ring_backward, ring_workspace)
_WAYS: Mapping[str, _Way] = {
    "all_gather": _Way(all_gather_forward, all_gather_backward, all_gather_workspace),
    "gathered_ring": _Way(gathered_ring_forward, gathered_ring_backward, gathered_ring_workspace),
}
"""Methods whose ranks do not pass keys and values round a ring."""


def core_forward(core: Core) -> tuple[Piece, ...]:
    """From queries, keys and values of a rank's tokens to the output of the same tokens."""
    context = core.shard.context
    if context.ulysses > 1:
        return joined(exchange(core), core_forward(core.exchanged()), exchange_back(core))
    if context.ranks == 1:
        return local_forward(core)
    return _WAYS.get(context.method, _RING).forward(core)


def core_backward(core: Core) -> tuple[Piece, ...]:
    """From the gradient of the output to those of queries, keys and values."""
    context = core.shard.context
    if context.ulysses > 1:
        return joined(
            exchange(core, gradients=True), core_backward(core.exchanged()), exchange_back(core, gradients=True)
        )
    if context.ranks == 1:
        return local_backward(core)
    return _WAYS.get(context.method, _RING).backward(core)


def core_workspace(core: Core) -> tuple[int, int]:
    """Bytes that forward and backward pass hold beside what attention over a rank's own tokens does."""
    context = core.shard.context
    if context.ulysses > 1:
        outer, inner = exchange_workspace(core), core_workspace(core.exchanged())
        return outer[0] + inner[0], outer[1] + inner[1]
    if context.ranks == 1:
        return 0, 0
    return _WAYS.get(context.method, _RING).workspace(core)
