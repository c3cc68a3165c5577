"""Interleaved 1F1B whose passes run in pairs: exchanges of experts hide behind the kernels of another micro-batch."""

from __future__ import annotations

from clustersim.workload.schedule.interleaved import turns
from clustersim.workload.schedule.unit import Overlapped, Unit

__all__ = ["interleaved_overlapped"]


def interleaved_overlapped(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit | Overlapped]]:
    """One forward more than interleaved 1F1B to warm up, so that each forward is independent of the backward beside it.

    Stage s of p warms up with 2·(p - 1 - s) + (v - 1)·p + 1 forwards and then overlaps the next forward with the next
    backward. With one stage that is a forward, pairs of the next micro-batch's forward with this one's backward, and a
    backward. A stage holds one chunk's activations more than under interleaved 1F1B.

    Parameters
    ----------
    num_stages : int
        p
    num_virtual : int
        v, chunks a stage
    num_micro_batches : int
        m, a multiple of p

    Returns
    -------
    list[list[Unit | Overlapped]]
        2·m·v units for each of p stages

    Raises
    ------
    ValueError
        when p does not divide m

    References
    ----------
    Megatron-LM, ``overlap_moe_expert_parallel_comm``: ``megatron/core/pipeline_parallel/combined_1f1b.py``, and
    ``get_pp_rank_microbatches`` of ``schedules.py`` for the warm-up. With several stages it asks for several chunks.
    """
    order = turns(num_stages, num_virtual, num_micro_batches)
    forward = [Unit("F", j, chunk) for j, chunk in order]
    backward = [Unit("B", j, num_virtual - 1 - chunk) for j, chunk in order]
    table: list[list[Unit | Overlapped]] = []
    for stage in range(num_stages):
        warm_up = min(2 * (num_stages - 1 - stage) + (num_virtual - 1) * num_stages + 1, len(order))
        pairs = [Overlapped(*pair) for pair in zip(forward[warm_up:], backward, strict=False)]
        table.append([*forward[:warm_up], *pairs, *backward[len(pairs) :]])
    return table
