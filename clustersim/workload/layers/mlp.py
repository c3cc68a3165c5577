"""The MLP block: two matrices, or three when gated, and the activation between them."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.kernels import (
    dropout_backward,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.product import Product
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

__all__ = ["mlp", "mlp_kept"]


def mlp(shard: Shard) -> Block:
    """MLP of one layer; gate and up projection are one GEMM, bias and activation (and gate) one pass."""
    model, rows, w = shard.model, shard.tokens, shard.width
    first = (model.hidden, shard.mlp_in_features)
    second = (shard.ffn, model.hidden)
    activation = w * rows * (shard.mlp_in_features + shard.ffn)
    activation_backward = w * rows * (2 * shard.mlp_in_features + shard.ffn)
    return Block(
        kind="mlp",
        forward=(
            _product("mlp forward", shard, first),
            _piece("mlp forward", memory_pass(activation, dtype=shard.recipe.activations)),
            _product("mlp forward", shard, second),
        ),
        backward=(
            *(_piece("mlp backward", mask) for mask in dropout_backward(shard)),
            _product("mlp backward", shard, second, of_gradient=True),
            _weights(*linear_weight_gradient(shard, *second)),
            _piece("mlp backward", memory_pass(activation_backward, dtype=shard.recipe.activations)),
            _product("mlp backward", shard, first, of_gradient=True),
            _weights(*linear_weight_gradient(shard, *first)),
        ),
        parts=(
            Part(
                name="activation",
                op=_compute("mlp activation forward", memory_pass(activation, dtype=shard.recipe.activations)),
                kept=w * rows * shard.ffn,
            ),
            norm_part(shard),
        ),
        parameters=(model.hidden + model.mlp_bias) * shard.mlp_in_features
        + (shard.ffn + model.mlp_bias) * model.hidden,
        replicated_parameters=model.mlp_bias * model.hidden,
        matrices=(
            Matrix(features_in=model.hidden, features_out=shard.ffn, count=2 if model.gated_mlp else 1),
            Matrix(features_in=shard.ffn, features_out=model.hidden),
        ),
        gathers=True,
        reduces=True,
        kept=kept_nbytes(mlp_kept(shard)),
        weight_kept=weight_gradient_nbytes(shard, first, second),
        forward_workspace=shard.full_nbytes,
        backward_workspace=shard.full_nbytes + w * rows * (shard.mlp_in_features + shard.ffn),
    )


def mlp_kept(shard: Shard) -> tuple[Kept, ...]:
    """What it keeps; under sequence parallelism its input as this rank's part, which is gathered again."""
    operand, h = shard.recipe.activation_operand.nbytes, shard.model.hidden
    return (
        Kept("mlp input", "mlp", operand(shard.rows * h), part="norm"),
        Kept("mlp before its activation", "mlp", shard.width * shard.tokens * shard.mlp_in_features),
        Kept("mlp after its activation", "mlp", operand(shard.tokens * shard.ffn), part="activation"),
        Kept("mlp mask of dropout", "mlp", shard.rows * h * shard.dropout),
    )


def _piece(name: str, *kernels: Kernel) -> Piece:
    return Piece(op=_compute(name, *kernels))


def _product(name: str, shard: Shard, features: tuple[int, int], *, of_gradient: bool = False) -> Piece:
    product = Product(features_in=features[0], features_out=features[1], of_gradient=of_gradient)
    return Piece(op=_compute(name, *product.kernels(shard)), product=product)


def _weights(*kernels: Kernel) -> Piece:
    return Piece(op=_compute("mlp weight gradient", *kernels), weight=True)


def _compute(name: str, *kernels: Kernel) -> Compute:
    return Compute(name=name, kind="mlp", kernels=kernels)
