"""ZeRO: optimizer state, then gradients, then weights split over the data-parallel ranks."""

from __future__ import annotations

from clustersim.workload.sharding.ddp import ddp
from clustersim.workload.sharding.movement import Movement
from clustersim.workload.sharding.sharding import Sharding

__all__ = ["zero"]


def zero(
    ranks: int,
    *,
    stage: int,
    weight: int,
    gradient: int,
    prefetch: int = 1,
    keeps: bool = False,
    each: bool = True,
) -> Sharding:
    """One of the stages.

    With P parameters of w bytes and g-byte gradients, the ranks each send and receive about ::

        0, 1, 2   g·P (reduce-scatter) + w·P (all-gather)     stage 0 as an all-reduce of g·P
        3         g·P (reduce-scatter) + 2·w·P (all-gathers), (m times a step for m micro-batches)

    Stages 2 and 3 reduce each micro-batch's gradients as they come, since nobody holds a whole gradient to add to,
    unless they are told to hold one and reduce it once.

    Parameters
    ----------
    ranks : int
    stage : int
        0: nothing, 1: the optimizer state, 2: also the gradients, 3: also the weights
    weight, gradient : int
        bytes of a weight as it is gathered and of a gradient as it is reduced [B]
    prefetch : int
        layers gathered ahead
    keeps : bool
        stage 3: weights are kept from the forward to the backward pass
    each : bool
        stages 2 and 3: reduce each micro-batch; else after the last one, with whole gradients until then

    References
    ----------
    Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020, sections 5 and 7.
    """
    if ranks == 1 or stage == 0:
        return ddp(ranks, gradient=gradient)
    gather = Movement(kind="all_gather", what="weights", nbytes=weight)
    reduce = (Movement(kind="reduce_scatter", what="gradients", nbytes=gradient),)
    if stage < 3:
        return Sharding(
            name=f"zero-{stage}",
            gradients=ranks if stage == 2 and each else 1,
            optimizer=ranks,
            reduce=reduce,
            refresh=(gather,),
            each_micro_batch=stage == 2 and each,
        )
    return Sharding(
        name="zero-3",
        weights=ranks,
        gradients=ranks if each else 1,
        optimizer=ranks,
        gather=(gather,),
        gather_again=() if keeps else (gather,),
        reduce=reduce,
        each_micro_batch=each,
        keeps=keeps,
        prefetch=prefetch,
    )
