"""Breadth-first: every micro-batch through one chunk before any goes through the next."""

from __future__ import annotations

from clustersim.workload.schedule.unit import Unit

__all__ = ["breadth_first"]


def breadth_first(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    """All forwards chunk by chunk, then all backwards chunk by chunk from the last.

    The gradients of a chunk are complete as soon as its last micro-batch is back, and its weights are needed once each
    way: both suit sharded data parallelism. With m at least p the bubble is that of interleaved 1F1B, 1/v of 1F1B's;
    with fewer, each chunk waits for the one before. A stage holds all m·v micro-batches and chunks.

    Parameters
    ----------
    num_stages : int
        p
    num_virtual : int
        v, chunks a stage
    num_micro_batches : int
        m

    Returns
    -------
    list[list[Unit]]
        2·m·v units for each of p stages

    References
    ----------
    Lamy-Poirier, Breadth-First Pipeline Parallelism, 2022 (arXiv 2211.05953).
    """
    forward = [Unit("F", j, c) for c in range(num_virtual) for j in range(num_micro_batches)]
    backward = [Unit("B", j, c) for c in reversed(range(num_virtual)) for j in range(num_micro_batches)]
    return [forward + backward for _ in range(num_stages)]
