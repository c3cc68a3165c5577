"""The loss that compares the features of two towers over all replicas."""

from __future__ import annotations

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.kernels import gemm, memory_pass
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.writing import Writing
from clustersim.workload.op import Collective
from clustersim.workload.shape.tower import Tower
from clustersim.workload.shard import Shard

__all__ = ["contrastive_loss"]

_KIND = "contrastive"


def contrastive_loss(shard: Shard) -> Block:
    """Each rank compares its own pairs with the features of all replicas: two products of b × B, B = b·dp.

    Features of both towers are gathered over the replicas, and the gradients of what was gathered are reduced back. A
    comparison is kept in fp32, once for each direction. Its one parameter is the scale.

    Raises
    ------
    ValueError
        when the model has one tower only

    References
    ----------
    Radford et al., 2021 (arXiv 2103.00020), section 2.5: each GPU computes the similarities of its local batch alone.
    """
    tower = shard.model.tower
    if tower is None:
        raise ValueError(f"tower: None must be given for the towers of {shard.model.name}")
    here, everywhere = shard.micro_batch, shard.micro_batch * shard.replicas
    logits = 2 * 4 * here * everywhere
    gathered = _gathered_nbytes(shard, tower)
    return Block(
        kind="contrastive loss",
        forward=_forward(shard, tower, here, everywhere),
        backward=_backward(shard, tower, here, everywhere),
        parameters=1,
        replicated_parameters=1,
        kept=gathered + logits,
        forward_workspace=logits,
        backward_workspace=logits + gathered,
    )


def _gathered_nbytes(shard: Shard, tower: Tower) -> int:
    """Features of both towers of all replicas [B]."""
    return 2 * shard.width * shard.micro_batch * shard.replicas * tower.projection


def _forward(shard: Shard, tower: Tower, here: int, everywhere: int) -> tuple[Piece, ...]:
    """Products, then the passes of a softmax over rows: largest, exponentials and their sum, normalise."""
    writing = Writing(_KIND)
    if shard.replicas > 1:
        writing.collective(_over_replicas(shard, tower, "all_gather", "all-gather features"), after=())
    compare = gemm(here, everywhere, tower.projection, batch=2, dtype=shard.recipe.products)
    softmax = memory_pass(20 * 2 * here * everywhere, dtype="fp32")
    writing.kernels(f"{_KIND} loss forward", compare, softmax)
    return writing.pieces()


def _backward(shard: Shard, tower: Tower, here: int, everywhere: int) -> tuple[Piece, ...]:
    writing = Writing(_KIND)
    own = gemm(here, tower.projection, everywhere, batch=2, dtype=shard.recipe.products)
    others = gemm(everywhere, tower.projection, here, batch=2, dtype=shard.recipe.products)
    softmax = memory_pass(8 * 2 * here * everywhere, dtype="fp32")
    writing.kernels(f"{_KIND} loss backward", softmax, own, others, after=())
    if shard.replicas > 1:
        writing.collective(_over_replicas(shard, tower, "reduce_scatter", "reduce-scatter feature gradients"))
    return writing.pieces()


def _over_replicas(shard: Shard, tower: Tower, kind: str, name: str) -> Collective:
    return Collective(name=name, kind=kind, slot="dp", nbytes=_gathered_nbytes(shard, tower), axis="dp")
