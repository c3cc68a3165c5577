"""Distributed data parallelism: every rank holds everything, gradients are summed."""

from __future__ import annotations

from clustersim.workload.sharding.movement import reduction
from clustersim.workload.sharding.sharding import Sharding

__all__ = ["ddp"]


def ddp(ranks: int, *, gradient: int, reduced: int | None = None, each: bool = False, bucket: int = 0) -> Sharding:
    """All-reduce of the gradients in buckets, after the last micro-batch unless ``each`` is reduced.

    Parameters
    ----------
    ranks : int
        that hold the same weights
    gradient : int
        bytes of a gradient as it is kept [B]
    reduced : int, optional
        as it is reduced [B]; None: as it is kept
    each : bool
        each micro-batch is reduced: gradient accumulation without PyTorch's ``no_sync``
    bucket : int
        parameters that are then reduced together; 0: those of a layer

    References
    ----------
    Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, 2020.
    """
    if ranks == 1:
        return Sharding(name="none")
    summed = reduction("all_reduce", gradient=gradient, reduced=reduced)
    return Sharding(name="ddp", reduce=(summed,), each_micro_batch=each, bucket=bucket)
