"""The collectives between the ranks that share a layer."""

from __future__ import annotations

from dataclasses import replace

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.op import Collective, Compute
from clustersim.workload.shard import Shard

__all__ = ["gather", "in_order", "put_off_nbytes", "reduction"]


def gather(shard: Shard, what: str) -> Collective:
    """All-gather of the tokens' parts into R × h, under sequence parallelism."""
    return _collective("all_gather", f"all-gather {what}", shard.full_nbytes)


def reduction(shard: Shard, what: str) -> Collective:
    """Sum of the ranks' partial R × h; under sequence parallelism each keeps its part of the tokens."""
    if shard.sequence_parallel:
        return _collective("reduce_scatter", f"reduce-scatter {what}", shard.full_nbytes)
    return _collective("all_reduce", f"all-reduce {what}", shard.full_nbytes)


def in_order(shard: Shard, what: str) -> tuple[Compute, ...]:
    """The copy of R × h behind an all-gather and in front of a reduce-scatter, where sequences are outermost.

    References
    ----------
    PyTorch, ``torch/distributed/_functional_collectives.py``: ``all_gather_tensor`` and ``reduce_scatter_tensor`` cut
    and concatenate where the dimension is not the first; ``SequenceParallel`` shards dimension 1.
    """
    if not (shard.batch_first and shard.sequence_parallel):
        return ()
    kernel = memory_pass(2 * shard.full_nbytes, dtype=shard.recipe.activations)
    return (Compute(name=f"copy of {what}", kind="copy", kernels=(kernel,)),)


def put_off_nbytes(block: Block, shard: Shard) -> int:
    """What is kept of a block whose gradients of weights are put off [B].

    Under sequence parallelism its input is this rank's part of the tokens.
    """
    if not (block.gathers and shard.sequence_parallel):
        return block.weight_kept
    own = shard.unquantised if block.kind == "head" else replace(shard, products_as=block.dtype)
    form = own.recipe.activation_operand
    whole, part = (form.nbytes(rows * shard.model.hidden) for rows in (shard.tokens, shard.rows))
    return block.weight_kept - whole + part


def _collective(kind: str, name: str, nbytes: int) -> Collective:
    return Collective(name=name, kind=kind, slot="tp", nbytes=nbytes, axis="tp")
