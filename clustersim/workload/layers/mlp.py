"""The MLP block: two matrices, or three when gated, and the activation between them."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.bias_gradient import bias_gradient
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.kernels import (
    dropout_backward,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.operators import gate_backward, gate_forward
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.product import Product
from clustersim.workload.layers.second_products import SECOND, mlp_products
from clustersim.workload.layers.writing import Writing
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

__all__ = ["mlp", "mlp_kept"]


def mlp(shard: Shard) -> Block:
    """MLP of one layer; gate and up projection are one GEMM or two; bias, activation and gate one pass where fused."""
    model, rows, w = shard.model, shard.tokens, shard.width
    wide, dtype = shard.mlp_in_features, shard.recipe.activations
    kept = mlp_kept(shard)
    activation: tuple[Kernel, ...] = (memory_pass(w * rows * (wide + shard.ffn), dtype=dtype, form="activation"),)
    activation_backward: tuple[Kernel, ...] = (
        memory_pass(w * rows * (2 * wide + shard.ffn), dtype=dtype, form="activation"),
    )
    if model.gated_mlp and "activation" not in shard.fusion:
        activation = gate_forward(shard, rows * shard.ffn)
        activation_backward = gate_backward(shard, rows * shard.ffn)
    return Block(
        kind="mlp",
        forward=_forward(shard, activation),
        backward=_backward(shard, activation_backward),
        parts=(
            norm_part(shard, kept),
            *_second_products(shard, kept_nbytes(kept, SECOND)),
            Part(
                name="activation",
                op=Compute(name="mlp activation forward", kind="mlp", kernels=activation),
                kept=kept_nbytes(kept, "activation"),
            ),
        ),
        parameters=(model.hidden + model.mlp_bias) * wide + (shard.ffn + model.mlp_bias) * model.hidden,
        replicated_parameters=model.mlp_bias * model.hidden,
        matrices=(
            Matrix(features_in=model.hidden, features_out=shard.ffn, count=2 if model.gated_mlp else 1, joins=True),
            Matrix(features_in=shard.ffn, features_out=model.hidden),
        ),
        gathers=True,
        reduces=True,
        kept=kept_nbytes(kept),
        weight_kept=weight_gradient_nbytes(shard, *_matrices(shard)),
        forward_workspace=shard.full_nbytes,
        backward_workspace=shard.full_nbytes + w * rows * (wide + shard.ffn),
    )


def mlp_kept(shard: Shard) -> tuple[Kept, ...]:
    """What it keeps; under sequence parallelism its input as this rank's part, which is gathered again."""
    operand, h = shard.recipe.activation_operand.nbytes, shard.model.hidden
    before = shard.width * shard.tokens * shard.ffn
    return (
        Kept("mlp input", "mlp", operand(shard.rows * h), part="norm"),
        Kept("mlp before its activation", "mlp", before),
        Kept("mlp before its gate", "mlp", shard.model.gated_mlp * before, part=SECOND),
        Kept("mlp after its activation", "mlp", operand(shard.tokens * shard.ffn), part="activation"),
        Kept("mlp mask of dropout", "mlp", shard.rows * h * shard.dropout),
    )


def _second_products(shard: Shard, kept: int) -> tuple[Part, ...]:
    """As a part to compute again, where there are any."""
    kernels = mlp_products(shard)
    op = Compute(name="mlp products forward", kind="mlp", kernels=kernels)
    return (Part(name=SECOND, op=op, kept=kept),) if kernels else ()


def _matrices(shard: Shard) -> tuple[tuple[int, int], tuple[int, int]]:
    """Into the MLP and out of it, as (features in, features out)."""
    return (shard.model.hidden, shard.mlp_in_features), (shard.ffn, shard.model.hidden)


def _products(shard: Shard, *, of_gradient: bool = False) -> tuple[Product, Product]:
    """Into the MLP and out of it."""
    inward = (shard.ffn,) * (2 if shard.model.gated_mlp else 1)
    return (
        Product(features_in=shard.model.hidden, features_out=inward, of_gradient=of_gradient, gathered=not of_gradient),
        Product(
            features_in=shard.ffn, features_out=(shard.model.hidden,), of_gradient=of_gradient, gathered=of_gradient
        ),
    )


def _forward(shard: Shard, activation: tuple[Kernel, ...]) -> tuple[Piece, ...]:
    (first, second), writing, name = _products(shard), Writing("mlp"), "mlp forward"
    writing.product(name, shard, first)
    writing.kernels(name, *activation)
    writing.product(name, shard, second)
    return writing.pieces()


def _backward(shard: Shard, activation: tuple[Kernel, ...]) -> tuple[Piece, ...]:
    (first, second), writing, name = _products(shard, of_gradient=True), Writing("mlp"), "mlp backward"
    weights, biased = "mlp weight gradient", shard.model.mlp_bias
    for kernel in dropout_backward(shard):
        writing.kernels(name, kernel)
    writing.product(name, shard, second)
    summed = bias_gradient(shard, biased * shard.model.hidden, tokens=shard.rows)
    writing.kernels(weights, *second.weight_gradients(shard), *summed, weight=True)
    writing.kernels(name, *activation)
    writing.product(name, shard, first)
    summed = bias_gradient(shard, biased * shard.mlp_in_features, tokens=shard.tokens)
    writing.kernels(weights, *first.weight_gradients(shard), *summed, weight=True)
    return writing.pieces()
