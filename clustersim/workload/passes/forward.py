"""The forward pass of a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clustersim.workload.activations import Recompute
from clustersim.workload.layers.block import again
from clustersim.workload.layers.head import loss_reductions
from clustersim.workload.layers.placed import Placed
from clustersim.workload.passes.fragment import ACTIVATIONS, COMMUNICATION, WORKSPACE, Chain, Fragment
from clustersim.workload.passes.tensor_parallel import gather, reduction
from clustersim.workload.shard import Shard

__all__ = ["forward", "forward_block"]


def forward(placed: Sequence[Placed], shard: Shard, *, stage: int, recompute: Recompute, sends: bool) -> Fragment:
    """Forward pass of a chunk for one micro-batch.

    Parameters
    ----------
    placed : Sequence[Placed]
        the chunk's blocks
    shard : Shard
    stage : int
        virtual stage, for the trace
    recompute : {"none", "selective", "full"}
        what is not kept for the backward pass is held only while its block runs
    sends : bool
        the output goes to another stage
    """
    chain = Chain(stage=stage, phase="forward")
    first = []
    for index, p in enumerate(placed):
        leaves = sends and index == len(placed) - 1
        produced = shard.residual_nbytes if p.block.produces else 0
        kept = 0 if recompute == "full" and p.layer >= 0 else p.block.held(recompute)
        start = {COMMUNICATION: produced, ACTIVATIONS: kept} if leaves else {ACTIVATIONS: kept + produced}
        transient = p.block.forward_workspace + p.block.kept - kept
        first.append(forward_block(chain, p, shard, start=start, transient=transient))
    return chain.fragment(first)


def forward_block(
    chain: Chain,
    placed: Placed,
    shard: Shard,
    *,
    start: Mapping[str, int],
    transient: int,
    repeated: bool = False,
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
    repeated : bool
        done a second time to save memory

    Returns
    -------
    int
        number of its first op
    """
    block, layer = placed.block, placed.layer
    numbers = []
    if block.gathers and shard.sequence_parallel:
        numbers.append(chain.add(gather(shard, f"{block.kind} input"), layer=layer))
        transient += shard.full_nbytes
    op = again(block.forward) if repeated else block.forward
    numbers.append(chain.add(op, layer=layer, start={**start, WORKSPACE: transient}, end={WORKSPACE: -transient}))
    if shard.tp > 1 and block.reduces:
        chain.add(reduction(shard, f"{block.kind} output"), layer=layer)
    if shard.tp > 1 and block.kind == "head":
        for collective in loss_reductions(shard):
            chain.add(collective, layer=layer)
    return numbers[0]
