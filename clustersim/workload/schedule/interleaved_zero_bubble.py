"""Interleaved ZB-H1: several chunks a stage, the gradients of the weights where a stage would otherwise wait."""

from __future__ import annotations

from clustersim.workload.schedule.interleaved import turns
from clustersim.workload.schedule.unit import Unit

__all__ = ["interleaved_zero_bubble"]


def interleaved_zero_bubble(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    """Chunks in the order of interleaved 1F1B; stage s computes the weights' gradients s backwards late.

    Stage s warms up with (v - 1)·p + p - 1 - s forwards, fewer than interleaved 1F1B, for gradients come back sooner.
    With W no longer than F the bubble is (p - 1)·(F + I - W) of chunks, that is 1/v of ZB-H1's. A stage holds at most
    p·v chunks from F to W, as much as the first stage of 1F1B, where interleaved 1F1B holds p·v + p - 1.

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
    list[list[Unit]]
        3·m·v units for each of p stages

    Raises
    ------
    ValueError
        when p does not divide m

    References
    ----------
    PyTorch, torch.distributed.pipelining, ScheduleInterleavedZeroBubble (torchtitan's InterleavedZeroBubble): its
    warm-up and delay; Qi et al., Zero Bubble Pipeline Parallelism, 2023 (arXiv 2401.10241).
    """
    order = turns(num_stages, num_virtual, num_micro_batches)
    table = []
    for stage in range(num_stages):
        warm_up = min((num_virtual - 1) * num_stages + num_stages - 1 - stage, len(order))
        row = [Unit("F", j, chunk) for j, chunk in order[:warm_up]]
        for k, (j, chunk) in enumerate(order):
            row += [Unit("F", *turn) for turn in order[warm_up + k : warm_up + k + 1]]
            row.append(Unit("I", j, num_virtual - 1 - chunk))
            if k >= stage:
                row.append(_weights(order[k - stage], num_virtual))
        row += [_weights(turn, num_virtual) for turn in order[max(0, len(order) - stage) :]]
        table.append(row)
    return table


def _weights(turn: tuple[int, int], num_virtual: int) -> Unit:
    micro_batch, chunk = turn
    return Unit("W", micro_batch, num_virtual - 1 - chunk)
