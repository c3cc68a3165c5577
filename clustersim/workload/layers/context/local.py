"""Attention over a sequence that one rank has whole."""

from __future__ import annotations

from clustersim.workload.layers.context.core import Core
from clustersim.workload.layers.piece import Piece

__all__ = ["local_backward", "local_forward"]


def local_forward(core: Core) -> tuple[Piece, ...]:
    """One kernel."""
    tokens = core.shard.tokens
    return (core.piece("forward", core.forward(pairs2=core.pairs2, queries=tokens, keys=tokens), after=None),)


def local_backward(core: Core) -> tuple[Piece, ...]:
    """One kernel."""
    tokens = core.shard.tokens
    return (core.piece("backward", core.backward(pairs2=core.pairs2, queries=tokens, keys=tokens), after=None),)
