"""Multi-token prediction: a module after the last layer that predicts one token further, with its own loss."""

from __future__ import annotations

from dataclasses import replace

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.embedding import embedding, embedding_parameters
from clustersim.workload.layers.kernels import (
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.layer import Layers
from clustersim.workload.layers.writing import Writing
from clustersim.workload.matrix import Matrix
from clustersim.workload.model import Model
from clustersim.workload.op import Collective
from clustersim.workload.passes.tensor_parallel import gather, reduction
from clustersim.workload.shard import Shard

__all__ = ["met_again", "mtp_embedding", "mtp_input", "mtp_layers"]


def mtp_embedding(shard: Shard, *, here: bool) -> Block:
    """The embedding of the tokens one further.

    Parameters
    ----------
    shard : Shard
    here : bool
        the stage holds the embedding, or a head tied to it; else it holds a copy, whose gradient is summed with that of
        the first stage
    """
    plain = embedding(shard)
    return replace(
        plain,
        kind="mtp embedding",
        parameters=0 if here else embedding_parameters(shard),
        replicated_parameters=0,
        matrices=() if here else plain.matrices[:1],
    )


def mtp_layers(layers: Layers, model: Model) -> list[Block]:
    """The blocks of the layers of one module."""
    if not model.mtp_layout:
        return layers[model.num_layers - 1]
    return [block for sublayers in model.mtp_layers() for block in layers.of(sublayers)]


def met_again(block: Block) -> Block:
    """A block whose weights another one holds: they are there once, and so are their gradients."""
    return replace(block, parameters=0, replicated_parameters=0, expert_parameters=0, matrices=(), expert_matrices=())


def mtp_input(shard: Shard) -> Block:
    """Norms of the last layer's output and of the embedding, side by side through a matrix of 2h × h.

    Backward, each norm has a kernel for the gradient of its input and one for that of its weights. Tensor-parallel
    ranks have h / t columns each, over all tokens, and gather each other's features.

    References
    ----------
    DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 2.2, equation 21. Megatron-Core,
    ``transformer/multi_token_prediction.py``: ``eh_proj`` is column-parallel, its output gathered over features, then
    split over tokens again under sequence parallelism.
    """
    h, x, dtype = shard.model.hidden, shard.residual_nbytes, shard.recipe.activations
    matrix = (2 * h, h // shard.tp)
    norms = 2 * h * (2 if shard.model.norm_bias else 1)
    forward, backward = Writing("mtp"), Writing("mtp")
    forward.kernels("mtp input forward", memory_pass(4 * x, dtype=dtype))
    if shard.sequence_parallel:
        forward.collective(_twice(gather(shard, "mtp input")))
    forward.kernels("mtp input forward", *linear(shard, *matrix))
    if shard.tp > 1:
        forward.collective(gather(shard, "mtp features"))
    again: tuple[int, ...] = ()
    if shard.sequence_parallel:
        backward.collective(gather(shard, "mtp output gradient"))
        again = (backward.collective(_twice(gather(shard, "mtp input again")), after=()),)
    last = backward.kernels("mtp input backward", *linear_input_gradient(shard, *matrix), after=(0,) if again else None)
    if shard.tp > 1:
        last = backward.collective(_twice(reduction(shard, "mtp input gradient")))
    last = backward.kernels("mtp input backward", *(memory_pass(5 * x, dtype=dtype),) * 2)
    weights = linear_weight_gradient(shard, *matrix)
    backward.kernels("mtp input weight gradient", *weights, after=(last, *again) if again else None, weight=True)
    return Block(
        kind="mtp input",
        forward=forward.pieces(),
        backward=backward.pieces(),
        parameters=matrix[0] * matrix[1] + norms,
        replicated_parameters=norms,
        matrices=(Matrix(features_in=matrix[0], features_out=matrix[1], dtype=shard.products_as),),
        produces=True,
        kept=shard.recipe.activation_operand.nbytes(2 * shard.rows * h),
        weight_kept=weight_gradient_nbytes(shard, matrix),
        forward_workspace=x,
        backward_workspace=2 * x,
    )


def _twice(op: Collective) -> Collective:
    """Of the norms' outputs side by side."""
    return replace(op, nbytes=2 * op.nbytes)
