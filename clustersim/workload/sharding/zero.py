"""ZeRO: optimizer state, then gradients, then weights split over the data-parallel ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from clustersim.workload.sharding.ddp import ddp
from clustersim.workload.sharding.movement import Movement, reduction
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
    each: bool | None = None,
    reduced: int | None = None,
    bucket: int = 0,
    bounded: bool = True,
    by_block: bool = False,
    scatters: bool = True,
    copies: bool = False,
    flat: bool = False,
) -> Sharding:
    """One of the stages.

    With P parameters of w bytes and g-byte gradients, the ranks each send and receive about ::

        0, 1, 2   g·P (reduce-scatter) + w·P (all-gather)     stage 0 as an all-reduce of g·P
        3         g·P (reduce-scatter) + 2·w·P (all-gathers), (m times a step for m micro-batches)

    Stages 2 and 3 reduce each micro-batch's gradients as they come, since nobody holds a whole gradient to add to,
    unless they are told to hold one and reduce it once. Stages 0 and 1 hold one anyway and reduce once, unless told so.

    Parameters
    ----------
    ranks : int
    stage : int
        0: nothing, 1: the optimizer state, 2: also the gradients, 3: also the weights
    weight, gradient : int
        bytes of a weight as it is gathered and of a gradient as it is kept [B]
    prefetch : int
        layers gathered ahead
    keeps : bool
        stage 3: weights are kept from the forward to the backward pass
    each : bool, optional
        reduce each micro-batch; else after the last one, with whole gradients until then. None: by the stage
    reduced : int, optional
        bytes of a gradient as it is reduced [B]; None: as it is kept
    bucket : int
        parameters whose gradients are reduced together, where weights are whole and each micro-batch is reduced; 0:
        those of a layer
    bounded : bool
        stage 3: a gathering waits until there is room for it
    by_block : bool
        stage 3: blocks are gathered one by one; else layers
    scatters : bool
        reduce-scatter; else an all-reduce, of which a rank keeps its part
    copies : bool
        stage 3: parameters are split one by one, as in PyTorch's FSDP2, and copied out of and into buffers, which also
        casts gradients
    flat : bool
        gradients that go together are put together, cast and divided before: those of one flat parameter a layer in
        FSDP1, those of a bucket in DeepSpeed's ``contiguous_gradients``

    References
    ----------
    Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020, sections 5 and 7.
    """
    each = stage > 1 if each is None else each
    if ranks == 1 or stage == 0:
        return ddp(ranks, gradient=gradient, reduced=reduced, each=each, bucket=bucket)
    gather = Movement(kind="all_gather", what="weights", nbytes=weight)
    kind: Literal["reduce_scatter", "all_reduce"] = "reduce_scatter" if scatters else "all_reduce"
    moved = reduction(kind, gradient=gradient, reduced=reduced, kept=ranks)
    flat = flat and (stage == 3 or each)
    reduce = (replace(moved, before=0) if flat or (copies and stage == 3) else moved,)
    if stage < 3:
        return Sharding(
            name=f"zero-{stage}",
            gradients=ranks if stage == 2 and each else 1,
            optimizer=ranks,
            reduce=reduce,
            refresh=(gather,),
            each_micro_batch=each,
            bucket=bucket,
            flat=flat,
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
        bounded=bounded,
        by_block=by_block,
        copies=copies,
        flat=flat,
    )
