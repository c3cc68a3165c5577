"""The backward pass of a chunk, with what has to be computed again for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from clustersim.workload.activations import Recompute
from clustersim.workload.layers.block import again
from clustersim.workload.layers.placed import Placed
from clustersim.workload.op import Compute
from clustersim.workload.passes.forward import forward_block
from clustersim.workload.passes.fragment import ACTIVATIONS, COMMUNICATION, WORKSPACE, Chain, Fragment
from clustersim.workload.passes.tensor_parallel import gather, reduction
from clustersim.workload.shard import Shard

__all__ = ["backward"]


def backward(
    placed: Sequence[Placed],
    shard: Shard,
    *,
    stage: int,
    recompute: Recompute,
    overlap: bool,
    receives: bool,
    sends: bool,
) -> Fragment:
    """Backward pass of a chunk for one micro-batch.

    The gradient of the residual stream is one buffer, from the receive (or the loss) to the send (or the
    embedding); it belongs to the communication where it is received or sent, to the workspace otherwise.

    Parameters
    ----------
    placed : Sequence[Placed]
        the chunk's blocks in forward order
    shard : Shard
    stage : int
        virtual stage, for the trace
    recompute : {"none", "selective", "full"}
    overlap : bool
        weight gradients run beside tensor-parallel reductions
    receives, sends : bool
        the gradient of the output comes from another stage, that of the input goes to one
    """
    chain = Chain(stage=stage, phase="backward")
    gradient = {COMMUNICATION if receives or sends else WORKSPACE: shard.residual_nbytes}
    ready = [-1] * len(placed)
    steps = [(i, p.block.backward) for i, p in reversed([*enumerate(placed)]) if p.block.backward is not None]
    for layer, group in groupby(steps, key=lambda step: placed[step[0]].layer):
        if layer >= 0 and recompute == "full":
            _compute_again(chain, [p for p in placed if p.layer == layer], shard)
        for i, op in group:
            p = placed[i]
            from_before = placed[i - 1].block.produces if i else p.block.kind != "embedding"
            end = Counter({ACTIVATIONS: -p.block.held(recompute) - from_before * shard.residual_nbytes})
            if i == steps[-1][0] and not sends:
                end.subtract(gradient)
            start = gradient if i == steps[0][0] and not receives else {}
            ready[i] = _backward_block(
                chain, p, op, shard, recompute=recompute, overlap=overlap, start=start, end=end
            )
    return chain.fragment(ready)


def _compute_again(chain: Chain, layer: Sequence[Placed], shard: Shard) -> None:
    """A layer's forward pass from its input, keeping everything this time; as in Megatron-LM, its collectives too."""
    for p in layer:
        start = {ACTIVATIONS: p.block.kept}
        forward_block(chain, p, shard, start=start, transient=p.block.forward_workspace, repeated=True)


def _backward_block(
    chain: Chain,
    placed: Placed,
    op: Compute,
    shard: Shard,
    *,
    recompute: Recompute,
    overlap: bool,
    start: Mapping[str, int],
    end: Mapping[str, int],
) -> int:
    """A block's backward pass with its collectives; the number of the op that completes its weights' gradient.

    Under sequence parallelism the output's gradient is gathered first, and the input once more for the weight
    gradient; the reduction of the input's gradient follows ``op`` and the weight gradient runs beside it. What is
    gathered or computed again is counted from the start of the op that reads it.
    """
    block, layer = placed.block, placed.layer
    full = shard.full_nbytes if shard.sequence_parallel else 0
    held = block.backward_workspace
    if block.reduces and full:
        chain.add(gather(shard, f"{block.kind} output gradient"), layer=layer)
        held += full
    if block.core is not None and recompute == "selective":
        chain.add(again(block.core), layer=layer)
        held += block.core_kept
    begin, done = Counter(start), Counter({WORKSPACE: -held})
    begin[WORKSPACE] += held

    if block.weight_gradient is None:
        done.update(end)
        return chain.add(op, layer=layer, start=begin, end=done)
    inputs = []
    if full:
        inputs.append(chain.beside(gather(shard, f"{block.kind} input again"), after=chain.last, layer=layer))
        begin[WORKSPACE] += full
    inputs.append(chain.add(op, layer=layer, start=begin, end=done))
    summed = chain.add(reduction(shard, f"{block.kind} input gradient"), layer=layer)
    freed = Counter(end)
    freed[WORKSPACE] -= full
    return chain.beside(
        block.weight_gradient, after=inputs if overlap else [*inputs, summed], layer=layer, end=freed
    )
