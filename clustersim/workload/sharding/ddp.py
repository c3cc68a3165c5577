"""Distributed data parallelism: every rank holds everything, gradients are summed."""

from __future__ import annotations

from clustersim.workload.sharding.movement import Movement
from clustersim.workload.sharding.sharding import Sharding

__all__ = ["ddp"]


def ddp(ranks: int, *, gradient: int) -> Sharding:
    """All-reduce of the gradients in buckets.

    Parameters
    ----------
    ranks : int
        that hold the same weights
    gradient : int
        bytes of a gradient as it is reduced [B]

    References
    ----------
    Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, 2020.
    """
    if ranks == 1:
        return Sharding(name="none")
    return Sharding(name="ddp", reduce=(Movement(kind="all_reduce", what="gradients", nbytes=gradient),))
