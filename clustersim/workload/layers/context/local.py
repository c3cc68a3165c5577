"""Attention over a sequence that one rank has whole."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.core import Core
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.unfused import unfused_backward, unfused_forward

__all__ = ["local_backward", "local_forward", "local_kernels", "local_kernels_backward"]


def local_forward(core: Core) -> tuple[Piece, ...]:
    """One op."""
    return (core.piece("forward", *local_kernels(core), after=None),)


def local_backward(core: Core) -> tuple[Piece, ...]:
    """One op."""
    return (core.piece("backward", *local_kernels_backward(core), after=None),)


def local_kernels(core: Core) -> tuple[Kernel, ...]:
    """Scores, softmax and context: one kernel, or one each."""
    if core.shard.attention == "unfused":
        return unfused_forward(core)
    tokens = core.shard.tokens
    casts = core.cast(core.query_features + core.kv_features)
    return (*casts, core.forward(pairs2=core.pairs2, queries=tokens, keys=tokens))


def local_kernels_backward(core: Core) -> tuple[Kernel, ...]:
    """Gradients of queries, keys and values: one kernel, or one each."""
    if core.shard.attention == "unfused":
        return unfused_backward(core)
    tokens = core.shard.tokens
    casts = core.cast(core.output_features)
    return (*casts, core.backward(pairs2=core.backward_pairs2, queries=tokens, keys=tokens))
