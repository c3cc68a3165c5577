"""The LM head and its loss, a block each, split over tensor-parallel ranks by vocabulary."""

from __future__ import annotations

from dataclasses import replace

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.embedding import embedding_parameters
from clustersim.workload.layers.kernels import (
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.loss import LOSS, kept_logits_nbytes, loss_backward, loss_forward, loss_workspace
from clustersim.workload.layers.piece import Piece, serial
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Collective, Compute
from clustersim.workload.shard import Shard

__all__ = ["head", "loss", "loss_reductions"]


def head(shard: Shard, *, tied_here: bool) -> Block:
    """Logits: a GEMM forward, two backward. A model whose head is narrower than h projects first.

    The logits belong to the loss from its own start on, and their gradients to the head from its end. Its products are
    always taken to run on matrix units: Megatron-LM, whose libraries had no such kernels for unaligned sides, pads the
    vocabulary.

    Parameters
    ----------
    shard : Shard
    tied_here : bool
        this rank's embedding is the head's matrix: no weights of its own
    """
    model, rows, w = shard.model, shard.tokens, shard.width
    logits, plain = rows * shard.vocab, replace(shard.unquantised, unaligned="matrix")
    shape = (shard.embedding_dim, shard.vocab)
    forward = [*linear(plain, *shape)]
    backward = [*linear_input_gradient(plain, *shape)]
    weight_gradient = [*linear_weight_gradient(plain, *shape)]
    shapes = [shape]
    matrices = [] if tied_here else [Matrix(features_in=shape[0], features_out=shape[1], hidden=False)]
    projection, projected = 0, 0
    if model.embedding_dim is not None:
        narrow = (model.hidden, model.embedding_dim)
        forward = [*linear(plain, *narrow), *forward]
        backward += linear_input_gradient(plain, *narrow)
        weight_gradient += linear_weight_gradient(plain, *narrow)
        shapes.append(narrow)
        matrices.append(Matrix(features_in=narrow[0], features_out=narrow[1], hidden=False))
        projection, projected = model.hidden * model.embedding_dim, w * rows * model.embedding_dim
    return Block(
        kind="head",
        forward=serial(Compute(name="head forward", kind="head", kernels=tuple(forward))),
        backward=(
            Piece(op=Compute(name="head backward", kind="head", kernels=tuple(backward))),
            Piece(op=Compute(name="head weight gradient", kind="head", kernels=tuple(weight_gradient)), weight=True),
        ),
        parameters=(0 if tied_here else embedding_parameters(shard)) + model.head_bias * shard.vocab + projection,
        replicated_parameters=projection,
        matrices=tuple(matrices),
        gathers=True,
        kept=shard.residual_nbytes + projected,
        weight_kept=weight_gradient_nbytes(plain, *shapes),
        forward_workspace=w * logits,
        backward_workspace=w * logits + shard.full_nbytes,
    )


def loss(shard: Shard) -> Block:
    """Cross-entropy in fp32 over logits of w bytes, and their gradients.

    Their passes are those of :mod:`clustersim.workload.layers.loss`. What is kept of the logits goes before the head's
    products backward.
    """
    forward, backward = loss_workspace(shard)
    return Block(
        kind="loss",
        forward=serial(Compute(name=LOSS[0], kind="head", kernels=loss_forward(shard))),
        backward=serial(Compute(name=LOSS[1], kind="head", kernels=loss_backward(shard))),
        kept=kept_logits_nbytes(shard),
        forward_workspace=forward,
        backward_workspace=backward,
    )


def loss_reductions(shard: Shard) -> tuple[Collective, ...]:
    """Three all-reduces of one fp32 number a token: row maximum, target logit, sum of exponentials.

    They stand between the passes of :func:`loss` and are shown after it.

    References
    ----------
    Shoeybi et al., Megatron-LM, 2019, section 3 (cross-entropy over a split vocabulary).
    """
    names = ("maximum", "target logit", "sum of exponentials")
    return tuple(
        Collective(name=f"all-reduce {name}", kind="all_reduce", slot="tp", nbytes=4 * shard.tokens, axis="tp")
        for name in names
    )
