"""The collectives between the ranks that share a layer."""

from __future__ import annotations

from dataclasses import replace

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.op import Collective, Compute
from clustersim.workload.shard import Shard

__all__ = ["cast_before", "gather", "gathered_nbytes", "in_order", "put_off_nbytes", "reduction"]


def cast_before(shard: Shard, block: Block) -> bool:
    """Whether ranks cast their tokens before a block's products gather them."""
    reads = any(piece.product.gathered for piece in (*block.forward, *block.backward) if piece.product)
    return reads and replace(shard, products_as=block.dtype).gathers_cast


def gathered_nbytes(shard: Shard, tokens: int, *, cast: bool) -> int:
    """So many gathered tokens [B]; of one scale a tensor, cast ones have no more than their elements."""
    elements = tokens * shard.model.hidden
    return shard.recipe.activation_operand.nbytes(elements) if cast else shard.width * elements


def gather(shard: Shard, what: str, *, cast: bool = False) -> Collective:
    """All-gather of the tokens' parts into R × h, under sequence parallelism."""
    return _collective("all_gather", f"all-gather {what}", gathered_nbytes(shard, shard.tokens, cast=cast))


def reduction(shard: Shard, what: str) -> Collective:
    """Sum of the ranks' partial R × h; under sequence parallelism each keeps its part of the tokens."""
    if shard.sequence_parallel:
        return _collective("reduce_scatter", f"reduce-scatter {what}", shard.full_nbytes)
    return _collective("all_reduce", f"all-reduce {what}", shard.full_nbytes)


def in_order(shard: Shard, what: str, *, cast: bool = False) -> tuple[Compute, ...]:
    """The copy of R × h behind an all-gather and in front of a reduce-scatter, where sequences are outermost.

    References
    ----------
    PyTorch, ``torch/distributed/_functional_collectives.py``: ``all_gather_tensor`` and ``reduce_scatter_tensor`` cut
    and concatenate where the dimension is not the first; ``SequenceParallel`` shards dimension 1.
    """
    if not (shard.batch_first and shard.sequence_parallel):
        return ()
    kernel = memory_pass(2 * gathered_nbytes(shard, shard.tokens, cast=cast), dtype=shard.recipe.activations)
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
