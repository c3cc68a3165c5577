"""The backward pass of a chunk, whole or in two parts, with what has to be computed again for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from clustersim.workload.layers.piece import Piece, fused
from clustersim.workload.layers.placed import Placed
from clustersim.workload.op import Collective, Compute
from clustersim.workload.passes.activation_offload import OffloadedActivations, Returning
from clustersim.workload.passes.chain import Chain
from clustersim.workload.passes.forward import forward_block
from clustersim.workload.passes.fragment import ACTIVATIONS, COMMUNICATION, WORKSPACE, Fragment
from clustersim.workload.passes.parameter_group import ParameterGroup, Traffic
from clustersim.workload.passes.tensor_parallel import cast_before, gather, in_order, put_off_nbytes, reduction
from clustersim.workload.passes.tensor_parallel_overlap import as_tokens_come, as_tokens_go
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard
from clustersim.workload.tensor_overlap import TensorOverlap

__all__ = ["backward", "weight_backward"]


def backward(
    placed: Sequence[Placed],
    shard: Shard,
    *,
    stage: int,
    recompute: Recomputation,
    overlap: bool,
    receives: bool,
    sends: bool,
    groups: Sequence[ParameterGroup] = (),
    prefetch: int = 1,
    weights: bool = True,
    products: TensorOverlap | None = None,
    away: Sequence[OffloadedActivations] = (),
) -> Fragment:
    """Backward pass of a chunk for one micro-batch.

    The gradient of the residual stream is one buffer, from the receive (or the head) to the send (or the
    embedding); it belongs to the communication where it is received or sent, to the workspace otherwise.

    Parameters
    ----------
    placed : Sequence[Placed]
        the chunk's blocks in forward order
    shard : Shard
    stage : int
        virtual stage, for the trace
    recompute : Recomputation
    overlap : bool
        weight gradients run beside tensor-parallel reductions
    receives, sends : bool
        the gradient of the output comes from another stage, that of the input goes to one
    groups : Sequence[ParameterGroup]
        weights that are not here
    prefetch : int
        groups gathered ahead
    weights : bool
        with the gradients of the weights; otherwise what they read is kept for :func:`weight_backward`
    products : TensorOverlap, optional
        how they take and give tokens; None: whole
    away : Sequence[OffloadedActivations]
        what of its activations comes back to the GPU
    """
    products = products or TensorOverlap()
    chain = Chain(stage=stage, phase="backward" if weights else "backward input")
    widest = max(p.residual_nbytes for p in placed)
    gradient = {COMMUNICATION if receives or sends else WORKSPACE: widest}
    first_layer = min((p.layer for p in placed if p.layer >= 0), default=0)
    ready = [-1] * len(placed)
    order = [i for i in reversed(range(len(placed))) if placed[i].block.backward]
    first = next((i for i in order if placed[i].block.kind != "loss"), order[0])
    here = groups if weights else [replace(group, reduce=()) for group in groups]
    traffic = Traffic(chain, here, order, prefetch=prefetch, backward=True)
    returning = Returning(chain, away, order)

    def together(i: int) -> tuple[bool, int]:
        """Blocks of one layer, or of one group of layers that are computed again together."""
        group = recompute.group(placed[i].layer, first_layer=first_layer)
        return group >= 0, group if group >= 0 else placed[i].layer

    for (repeated, group), members in groupby(order, key=together):
        steps = list(members)
        returning.before(steps)
        opened = {i: traffic.open(i) for i in steps} if repeated else {}
        if repeated:
            layers = [p for i, p in enumerate(placed) if together(i) == (True, group)]
            _compute_again(chain, layers, shard, products, early_stop=recompute.early_stop)
        for i in steps:
            p = placed[i]
            before = placed[i - 1] if i else None
            came = sends if before is None else before.block.produces
            start, end = Counter(opened[i] if repeated else traffic.open(i)), Counter(traffic.freed(i))
            end[ACTIVATIONS] -= p.block.kept if repeated else p.block.held(recompute)
            end[ACTIVATIONS] -= came * (p if before is None else before).residual_nbytes
            if i == order[-1] and not sends:
                end.subtract(gradient)
            if i == first and not receives:
                start.update(gradient)
            if not weights:
                end[ACTIVATIONS] += put_off_nbytes(p.block, shard)
            ready[i] = _backward_block(
                chain,
                p,
                shard,
                recompute=recompute,
                overlap=overlap,
                products=products,
                start=start,
                end=end,
                weights=weights,
            )
            traffic.close(i, ready)
    return chain.fragment(ready)


def weight_backward(
    placed: Sequence[Placed],
    shard: Shard,
    *,
    stage: int,
    groups: Sequence[ParameterGroup] = (),
) -> Fragment:
    """The gradients of a chunk's weights for one micro-batch, put off until nothing else can be done.

    Under sequence parallelism the input of a block is kept as this rank's part and gathered again, one block ahead.

    References
    ----------
    Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 2, and their code: inputs are gathered by the function
    that is put off.
    """
    chain = Chain(stage=stage, phase="backward weight")
    order = [i for i in reversed(range(len(placed))) if placed[i].block.weight_backward()]
    here = [replace(group, gather_again=(), gathered_nbytes=0) for group in groups]
    traffic = Traffic(chain, here, order, prefetch=0, backward=True)
    ready = [-1] * len(placed)
    done: list[int] = []
    for i in order:
        block, layer = placed[i].block, placed[i].layer
        start, end = Counter(traffic.open(i)), Counter({ACTIVATIONS: -put_off_nbytes(block, shard)})
        if block.gathers and shard.sequence_parallel:
            arrived = chain.beside(
                gather(shard, f"{block.kind} input again", cast=cast_before(shard, block)),
                after=done[-2:-1],
                layer=layer,
            )
            chain.last = [*chain.last, arrived]
            start[WORKSPACE] += shard.full_nbytes
            end[WORKSPACE] -= shard.full_nbytes
        ready[i] = chain.write(block.weight_backward(), layer=layer, start=start, end=end)[-1]
        chain.last = [ready[i]]
        done.append(ready[i])
        traffic.close(i, ready)
    return chain.fragment(ready)


def _compute_again(
    chain: Chain, layers: Sequence[Placed], shard: Shard, products: TensorOverlap, *, early_stop: bool
) -> None:
    """The forward pass of layers from their input, keeping everything now; as in Megatron-LM, their collectives too.

    With an early stop it ends at the last tensor that is kept: blocks after it are left out, and the product that reads
    it, where nothing else stands behind; of experts also the way back of their results.

    References
    ----------
    PyTorch, ``torch/utils/checkpoint.py``, ``set_checkpoint_early_stop``, and pull request 96866.
    """
    written = [
        (p, p.block.kept + p.residual_nbytes * (p.block.produces and n < len(layers) - 1)) for n, p in enumerate(layers)
    ]
    while early_stop and len(written) > 1 and not written[-1][1]:
        written.pop()
    for n, (p, nbytes) in enumerate(written):
        stops = early_stop and n == len(written) - 1 and bool(p.block.until_kept or p.block.forward[-1].product)
        forward_block(
            chain,
            p,
            shard,
            start={ACTIVATIONS: nbytes},
            transient=p.block.forward_workspace,
            products=products,
            repeated=True,
            until_kept=stops,
        )


def _backward_block(
    chain: Chain,
    placed: Placed,
    shard: Shard,
    *,
    recompute: Recomputation,
    overlap: bool,
    products: TensorOverlap,
    start: Mapping[str, int],
    end: Mapping[str, int],
    weights: bool,
) -> int:
    """A block's backward pass with its collectives; the number of the op that completes its weights' gradient.

    Under sequence parallelism the output's gradient is gathered first, and the input once more for the weight
    gradient; the reduction of the input's gradient follows and the last weight gradient runs beside it. Where products
    take and give tokens in parts, so does this, but for the reduction that has a weight gradient beside it. What is
    gathered or computed again is counted from the start of the op that reads it.
    """
    block, layer = placed.block, placed.layer
    full = shard.full_nbytes if shard.sequence_parallel else 0
    held, cast = block.backward_workspace, cast_before(shard, block)
    parts = bool(full) and any(piece.product for piece in block.backward)
    come, go = parts and block.reduces and products.gather != "whole", parts and products.reduce != "whole"
    # a sum of several products is whole or not there at all
    go = go and not any(piece.product.sums(shard) for piece in block.backward if piece.product)
    if block.reduces and full:
        if not come:
            chain.add(gather(shard, f"{block.kind} output gradient", cast=cast), layer=layer)
            for copy in in_order(shard, f"{block.kind} output gradient", cast=cast):
                chain.add(copy, layer=layer)
        held += full
    for part in block.again(recompute):
        chain.write(part.pieces, layer=layer)
        held += part.kept
    reduces = block.gathers and shard.tp > 1

    def arranged() -> tuple[tuple[Piece, ...], Compute | None, Collective | None, bool]:
        if weights:
            pieces, beside = block.whole_backward(apart=reduces, arranged=tuple)
        else:
            pieces, beside = block.input_backward(arranged=tuple), None
        in_parts = go and reduces and (beside is None or not overlap)
        once_more = gather(shard, f"{block.kind} input again", cast=cast) if full and beside is not None else None
        if come:
            pieces = as_tokens_come(
                pieces, shard, products, what=f"{block.kind} output gradient", then=once_more, cast=cast
            )
        if in_parts:
            pieces = as_tokens_go(pieces, shard, products, what=f"{block.kind} input gradient")
        return fused(pieces), beside, once_more, in_parts

    pieces, beside, once_more, go = chain.once(block, "backward", arranged)
    begin, done = Counter(start), Counter({WORKSPACE: -held})
    begin[WORKSPACE] += held
    if beside is None:
        done.update(end)
        number = chain.write(pieces, layer=layer, start=begin, end=done)[-1]
        if reduces and not go:
            for copy in in_order(shard, f"{block.kind} input gradient"):
                chain.add(copy, layer=layer)
            chain.add(reduction(shard, f"{block.kind} input gradient"), layer=layer)
        return number
    inputs = []
    if once_more is not None:
        begin[WORKSPACE] += full
        if not come:
            inputs.append(chain.beside(once_more, after=chain.last, layer=layer))
    numbers = chain.write(pieces, layer=layer, start=begin, end=done)
    inputs += [number for number, piece in zip(numbers, pieces, strict=True) if piece.op == once_more]
    for copy in () if go else in_order(shard, f"{block.kind} input gradient"):
        chain.add(copy, layer=layer)
    summed = numbers[-1] if go else chain.add(reduction(shard, f"{block.kind} input gradient"), layer=layer)
    for copy in in_order(shard, f"{block.kind} input again", cast=cast) if inputs else ():
        inputs = [chain.beside(copy, after=inputs, layer=layer)]
    inputs.append(numbers[-1])
    freed = Counter(end)
    freed[WORKSPACE] -= full
    return chain.beside(beside, after=inputs if overlap else [*inputs, summed], layer=layer, end=freed)
