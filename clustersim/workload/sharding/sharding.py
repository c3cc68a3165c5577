"""A sharding: how data-parallel ranks divide weights, gradients and optimizer state, and what they exchange."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clustersim.workload.sharding.movement import Movement

__all__ = ["Sharding", "Strategy"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sharding:
    """A strategy for weights that a known number of ranks share.

    Each tuple of movements is made one after the other. What is gathered before the forward pass is given back after
    it and gathered again, unless it is kept.

    Parameters
    ----------
    name : str
        as notes and results call it
    weights, gradients, optimizer : int
        ranks over which each is split; 1: whole on every rank
    gather, gather_again : tuple[Movement, ...]
        weights, before their forward and their backward pass, parameter group by parameter group
    reduce : tuple[Movement, ...]
        gradients
    refresh : tuple[Movement, ...]
        weights after the update
    inner : int
        ranks of an inner group
    each_micro_batch : bool
        gradients are reduced as soon as a parameter group's backward pass is through, micro-batch by micro-batch;
        otherwise after the last micro-batch, in buckets
    keeps : bool
        gathered weights are kept from the forward to the backward pass
    prefetch : int
        parameter groups that are gathered ahead of the one in use
    bounded : bool
        a gathering waits until no more than ``prefetch`` other groups are here; else only for its turn on its stream
    by_block : bool
        a parameter group is a block with the norm before it; else a layer
    copies : bool
        gathered weights are copied out of the buffer that they arrive in, gradients into the one that is reduced, among
        the kernels of the passes
    flat : bool
        the gradients of a parameter group are put together, cast and divided before they are reduced
    bucket : int
        parameters whose gradients are reduced together inside the passes, where weights stay whole; 0: those of a layer
    extra_weights : float
        bytes a parameter of this rank that it holds beyond its shards: secondary copies [B]
    sync_every : int
        steps from one exchange to the next; in between the ranks, or groups of ranks, go their own ways
    exchange : tuple[Movement, ...]
        what is exchanged then, of the weights after the last update
    exchange_state : float
        bytes kept for it, a parameter of this rank's part of the optimizer state [B]
    """

    name: str
    weights: int = 1
    gradients: int = 1
    optimizer: int = 1
    gather: tuple[Movement, ...] = ()
    gather_again: tuple[Movement, ...] = ()
    reduce: tuple[Movement, ...] = ()
    refresh: tuple[Movement, ...] = ()
    inner: int = 1
    each_micro_batch: bool = False
    keeps: bool = False
    prefetch: int = 1
    bounded: bool = True
    by_block: bool = False
    copies: bool = False
    flat: bool = False
    bucket: int = 0
    extra_weights: float = 0.0
    sync_every: int = 1
    exchange: tuple[Movement, ...] = ()
    exchange_state: float = 0.0


Strategy = Callable[[int], Sharding]
"""ranks that hold the same weights -> how they divide them; dense weights and those of experts differ in ranks."""
