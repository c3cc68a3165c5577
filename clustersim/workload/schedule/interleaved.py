"""Interleaved 1F1B: each stage holds several chunks of the model, which shrinks the bubble."""

from __future__ import annotations

from clustersim.workload.schedule.unit import Unit

__all__ = ["interleaved", "turns"]


def interleaved(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[list[Unit]]:
    """Micro-batches go in groups of p through the first chunk of every stage, then through the second, and so on.

    The k-th forward of a stage is micro-batch p·(k div p·v) + k mod p of chunk (k mod p·v) div p; backwards go through
    the chunks the other way round. Stage s warms up with 2·(p - 1 - s) + (v - 1)·p forwards, then alternates. The
    bubble is 1/v of that of 1F1B, the traffic between stages v times as much.

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
        2·m·v units for each of p stages

    Raises
    ------
    ValueError
        when p does not divide m

    References
    ----------
    Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021, section
    2.2.2 and figure 4; the warm-up count is that of Megatron-LM's implementation.
    """
    order = turns(num_stages, num_virtual, num_micro_batches)
    total = len(order)
    forward = [Unit("F", j, chunk) for j, chunk in order]
    backward = [Unit("B", j, num_virtual - 1 - chunk) for j, chunk in order]
    table = []
    for stage in range(num_stages):
        warm_up = min(2 * (num_stages - 1 - stage) + (num_virtual - 1) * num_stages, total)
        units = forward[:warm_up]
        for j in range(total - warm_up):
            units += [forward[warm_up + j], backward[j]]
        table.append(units + backward[total - warm_up :])
    return table


def turns(num_stages: int, num_virtual: int, num_micro_batches: int) -> list[tuple[int, int]]:
    """(micro-batch, chunk) of each forward of a stage in order; backwards take the chunks the other way round.

    Raises
    ------
    ValueError
        when the stages do not divide the micro-batches
    """
    if num_micro_batches % num_stages:
        raise ValueError(f"num_micro_batches: {num_micro_batches} must be a multiple of the {num_stages} stages")
    round_trip = num_stages * num_virtual
    return [
        (k // round_trip * num_stages + k % num_stages, k % round_trip // num_stages)
        for k in range(num_micro_batches * num_virtual)
    ]
