"""Dense layers before and behind the stack, which every tensor-parallel rank holds whole."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.kernels import (
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.piece import Piece
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

__all__ = ["classes", "features", "head_transform", "patches", "pooler"]


def head_transform(shard: Shard) -> Block:
    """A matrix of h × h, its activation and a norm in front of the head, over the tokens of this rank (BERT)."""
    h, x, dtype = shard.model.hidden, shard.residual_nbytes, shard.recipe.activations
    norm = h * (2 if shard.model.norm_bias else 1)
    read = shard.model.final_norm * x  # without a norm the last layer's output is kept as such
    return _dense(
        shard,
        "head transform",
        (h, h),
        tokens=shard.rows,
        parameters=h + norm,
        forward=(memory_pass(4 * x, dtype=dtype),),
        backward=(memory_pass(8 * x, dtype=dtype),),
        kept=2 * x + read,
    )


def pooler(shard: Shard) -> Block:
    """A matrix of h × h and tanh on the first token of each sequence (BERT)."""
    h, b = shard.model.hidden, shard.micro_batch
    touched = memory_pass(2 * shard.width * b * h, dtype=shard.recipe.activations)
    kept = 2 * shard.width * b * h
    return _dense(shard, "pooler", (h, h), tokens=b, parameters=h, forward=(touched,), backward=(touched,), kept=kept)


def classes(shard: Shard) -> Block:
    """A linear head over classes on one token a sequence, and its loss."""
    model, b = shard.model, shard.micro_batch
    logits = memory_pass(8 * b * model.num_classes, dtype="fp32")
    return _dense(
        shard,
        "classes",
        (model.hidden, model.num_classes),
        tokens=b,
        parameters=model.num_classes,
        forward=(logits,),
        backward=(logits,),
        kept=shard.width * b * model.hidden + 4 * b * model.num_classes,
    )


def features(shard: Shard, width: int) -> Block:
    """A matrix without bias on one token a sequence, to where towers are compared, and its norm.

    Parameters
    ----------
    shard : Shard
        of the tower
    width : int
        columns of the matrix
    """
    nbytes = 2 * shard.width * shard.micro_batch * width
    touched = memory_pass(nbytes, dtype=shard.recipe.activations)
    return _dense(
        shard,
        "features",
        (shard.model.hidden, width),
        tokens=shard.micro_batch,
        parameters=0,
        forward=(touched,),
        backward=(touched,),
        kept=shard.width * shard.micro_batch * (shard.model.hidden + width),
    )


def patches(shard: Shard) -> Block:
    """Patches of images times a matrix, a class token in front and positions; an image needs no gradient.

    Raises
    ------
    ValueError
        when the model reads no images
    """
    model, x, dtype = shard.model, shard.residual_nbytes, shard.recipe.activations
    if model.patches is None:
        raise ValueError(f"patches: None must be given for the images of {model.name}")
    matrix = model.patches.matrix(model.hidden)
    tokens = shard.micro_batch * model.patches.num_patches * shard.rows // shard.tokens
    return _dense(
        shard,
        "patches",
        matrix,
        tokens=tokens,
        parameters=model.patches.parameters(model.hidden)
        - matrix[0] * matrix[1]
        + model.parameters_by_part["positions"],
        forward=(memory_pass(2 * x, dtype=dtype),),
        backward=(memory_pass(x, dtype=dtype),),
        kept=shard.unquantised.recipe.activation_operand.nbytes(tokens * matrix[0]),
        produces=True,
    )


def _dense(
    shard: Shard,
    kind: str,
    matrix: tuple[int, int],
    *,
    tokens: int,
    parameters: int,
    forward: tuple[Kernel, ...],
    backward: tuple[Kernel, ...],
    kept: int,
    produces: bool = False,
) -> Block:
    """A matrix with ``parameters`` beside it; ``forward`` passes follow its product, ``backward`` ones lead to it.

    What produces the residual stream stands at the model's beginning, and has no gradient of its input.
    """
    plain = shard.unquantised
    own = matrix[0] * matrix[1] + parameters
    inputs = () if produces else linear_input_gradient(plain, *matrix, tokens=tokens)
    weights = linear_weight_gradient(plain, *matrix, tokens=tokens)
    return Block(
        kind=kind,
        forward=(_piece(f"{kind} forward", (*linear(plain, *matrix, tokens=tokens), *forward)),),
        backward=(
            _piece(f"{kind} backward", (*backward, *inputs)),
            _piece(f"{kind} weight gradient", weights, weight=True),
        ),
        parameters=own,
        replicated_parameters=own,
        matrices=(Matrix(features_in=matrix[0], features_out=matrix[1], hidden=False),),
        produces=produces,
        kept=kept,
        weight_kept=weight_gradient_nbytes(plain, matrix, tokens=tokens),
        backward_workspace=shard.width * tokens * sum(matrix),
    )


def _piece(name: str, kernels: tuple[Kernel, ...], *, weight: bool = False) -> Piece:
    return Piece(op=Compute(name=name, kind="head", kernels=kernels), weight=weight)
