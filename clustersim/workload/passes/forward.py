"""The forward pass of a chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from clustersim.workload.layers.block import again
from clustersim.workload.layers.head import loss_reductions
from clustersim.workload.layers.piece import Piece, fused
from clustersim.workload.layers.placed import Placed
from clustersim.workload.passes.activation_offload import Leaving, OffloadedActivations
from clustersim.workload.passes.chain import Chain
from clustersim.workload.passes.fragment import ACTIVATIONS, COMMUNICATION, WORKSPACE, Fragment
from clustersim.workload.passes.parameter_group import ParameterGroup, Traffic
from clustersim.workload.passes.tensor_parallel import cast_before, gather, in_order, reduction
from clustersim.workload.passes.tensor_parallel_overlap import as_tokens_come, as_tokens_go
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard
from clustersim.workload.tensor_overlap import TensorOverlap

__all__ = ["forward", "forward_block"]


def forward(
    placed: Sequence[Placed],
    shard: Shard,
    *,
    stage: int,
    recompute: Recomputation,
    sends: bool,
    groups: Sequence[ParameterGroup] = (),
    prefetch: int = 1,
    products: TensorOverlap | None = None,
    away: Sequence[OffloadedActivations] = (),
) -> Fragment:
    """Forward pass of a chunk for one micro-batch.

    Parameters
    ----------
    placed : Sequence[Placed]
        the chunk's blocks
    shard : Shard
    stage : int
        virtual stage, for the trace
    recompute : Recomputation
        what is not kept for the backward pass is held only while its block runs
    sends : bool
        the output goes to another stage
    groups : Sequence[ParameterGroup]
        weights that are not here
    prefetch : int
        groups gathered ahead
    products : TensorOverlap, optional
        how they take and give tokens; None: whole
    away : Sequence[OffloadedActivations]
        what of its activations leaves the GPU
    """
    chain = Chain(stage=stage, phase="forward")
    products = products or TensorOverlap()
    traffic = Traffic(chain, groups, range(len(placed)), prefetch=prefetch, backward=False)
    leaving = Leaving(chain, away)
    first_layer = min((p.layer for p in placed if p.layer >= 0), default=0)
    first = []
    for index, p in enumerate(placed):
        leaves = sends and index == len(placed) - 1
        group = recompute.group(p.layer, first_layer=first_layer)
        kept = 0 if group >= 0 else p.block.held(recompute)
        produced = p.residual_nbytes if p.block.produces else 0
        follows = placed[index + 1].layer if index + 1 < len(placed) else -1
        inside = group >= 0 and recompute.group(follows, first_layer=first_layer) == group
        start = Counter({ACTIVATIONS: kept})
        if not inside:
            start[COMMUNICATION if leaves else ACTIVATIONS] += produced
        transient = p.block.forward_workspace + p.block.kept - kept + inside * produced
        start.update(traffic.open(index))
        leaving.before(index)
        end = traffic.freed(index)
        first.append(forward_block(chain, p, shard, start=start, end=end, transient=transient, products=products))
        traffic.close(index, first)
        leaving.after(index)
    return chain.fragment(first)


def forward_block(
    chain: Chain,
    placed: Placed,
    shard: Shard,
    *,
    start: Mapping[str, int],
    transient: int,
    products: TensorOverlap,
    end: Mapping[str, int] | None = None,
    repeated: bool = False,
    until_kept: bool = False,
) -> int:
    """A block's forward pass with the collectives around it.

    Parameters
    ----------
    chain : Chain
    placed : Placed
    shard : Shard
    start : Mapping[str, int]
        bytes taken when it starts and held beyond its end
    transient : int
        bytes held while it runs [B]
    products : TensorOverlap
        how its products take and give tokens
    end : Mapping[str, int], optional
        further bytes given back when it ends
    repeated : bool
        done a second time to save memory
    until_kept : bool
        only as far as it keeps anything: without its last product, and so without the sum over its result

    Returns
    -------
    int
        number of its first op
    """
    block, layer = placed.block, placed.layer
    numbers = []
    gathers = block.gathers and shard.sequence_parallel
    reduces = block.reduces and shard.tp > 1 and not until_kept
    wanted: Sequence[Piece] = block.forward
    if until_kept:
        wanted = block.until_kept or block.forward[:-1]
    parts = shard.sequence_parallel and any(piece.product for piece in wanted)
    come, go = parts and gathers and products.gather != "whole", parts and reduces and products.reduce != "whole"
    cast = gathers and cast_before(shard, block)
    if gathers:
        transient += shard.full_nbytes

    def arranged() -> tuple[Piece, ...]:
        pieces = wanted
        if come:
            pieces = as_tokens_come(pieces, shard, products, what=f"{block.kind} input", cast=cast)
        if go:
            pieces = as_tokens_go(pieces, shard, products, what=f"{block.kind} output")
        return fused([replace(p, op=again(p.op)) for p in pieces] if repeated else pieces)

    if gathers and not come:
        numbers.append(chain.add(gather(shard, f"{block.kind} input", cast=cast), layer=layer))
        for copy in in_order(shard, f"{block.kind} input", cast=cast):
            chain.add(copy, layer=layer)
    way = "forward" if not repeated else "again as far as kept" if until_kept else "again"
    pieces = chain.once(block, way, arranged)
    done = Counter(end or {})
    done[WORKSPACE] -= transient
    begin = Counter(start)
    begin[WORKSPACE] += transient
    numbers += chain.write(pieces, layer=layer, start=begin, end=done)
    if reduces and not go:
        for copy in in_order(shard, f"{block.kind} output"):
            chain.add(copy, layer=layer)
        chain.add(reduction(shard, f"{block.kind} output"), layer=layer)
    if shard.tp > 1 and block.kind == "loss":
        for collective in loss_reductions(shard):
            chain.add(collective, layer=layer)
    return numbers[0]
