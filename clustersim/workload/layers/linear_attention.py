"""Linear attention by random features: keys and values are added up into a state that queries read (Performer).

References
----------
Choromanski et al., Rethinking Attention with Performers, 2020, sections 2.2 to 2.4 (arXiv 2009.14794).
"""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.kernels import (
    dropout_backward,
    gemm,
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.piece import Piece
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

__all__ = ["linear_attention", "linear_attention_kept", "state_nbytes"]

_KIND = "attention"
_NAME = "linear attention"


def linear_attention(shard: Shard) -> Block:
    """Linear attention of one layer, causal or not, in kernels that never write the states between tokens.

    Raises
    ------
    ValueError
        when the model has no linear attention
    """
    model = shard.model
    qkv, out = (model.hidden, shard.qkv_features), (shard.query_features, model.hidden)
    kept = linear_attention_kept(shard)
    core = Compute(name=f"{_NAME} core forward", kind=_KIND, kernels=_core_forward(shard))
    features = shard.width * _mapped(shard)
    return Block(
        kind=_NAME,
        forward=(_piece("forward", *linear(shard, *qkv), *_core_forward(shard), *linear(shard, *out)),),
        backward=(
            _piece("backward", *dropout_backward(shard), *linear_input_gradient(shard, *out)),
            _piece("weight gradient", *linear_weight_gradient(shard, *out), weight=True),
            _piece("backward", *_core_backward(shard), *linear_input_gradient(shard, *qkv)),
            _piece("weight gradient", *linear_weight_gradient(shard, *qkv), weight=True),
        ),
        parts=(
            Part(name="core", op=core, kept=kept_nbytes(kept, "core")),
            norm_part(shard, kept),
        ),
        parameters=(model.hidden + model.qkv_bias) * shard.qkv_features
        + (shard.query_features + model.attention_output_bias) * model.hidden,
        replicated_parameters=model.attention_output_bias * model.hidden,
        matrices=(
            Matrix(features_in=model.hidden, features_out=shard.query_features),
            Matrix(features_in=model.hidden, features_out=shard.key_features, count=2),
            Matrix(features_in=shard.query_features, features_out=model.hidden),
        ),
        gathers=True,
        reduces=True,
        kept=kept_nbytes(kept),
        weight_kept=weight_gradient_nbytes(shard, qkv, out),
        forward_workspace=shard.full_nbytes,
        backward_workspace=shard.full_nbytes
        + shard.width * shard.tokens * (shard.query_features + shard.qkv_features)
        + features,
    )


def linear_attention_kept(shard: Shard) -> tuple[Kept, ...]:
    """What it keeps; the features of queries and keys can be mapped again."""
    operand, h = shard.recipe.activation_operand.nbytes, shard.model.hidden
    output = shard.tokens * shard.query_features
    return (
        Kept("attention input", _NAME, operand(shard.rows * h), part="norm"),
        Kept("queries, keys, values", _NAME, shard.width * shard.tokens * shard.qkv_features),
        Kept("mapped queries and keys", _NAME, shard.width * _mapped(shard), part="core"),
        Kept("normalisers", _NAME, 4 * shard.tokens * shard.heads, part="core"),
        Kept("attention output", _NAME, operand(output)),
        Kept("attention mask of dropout", _NAME, shard.rows * h * shard.dropout),
    )


def state_nbytes(shard: Shard) -> int:
    """The state of one layer [B]: M·d sums and M that normalise, a head and sequence, in fp32."""
    return 4 * shard.micro_batch * shard.heads * _features(shard) * (shard.model.head_dim + 1)


def _features(shard: Shard) -> int:
    if shard.model.linear is None:
        raise ValueError(f"linear: None must be given for linear attention in {shard.model.name}")
    return shard.model.linear.features


def _mapped(shard: Shard) -> int:
    """Elements of mapped queries and keys."""
    return 2 * shard.tokens * shard.heads * _features(shard)


def _core_forward(shard: Shard) -> tuple[Kernel, ...]:
    """Map queries and keys, add up the state, read it: 8·a·M·d FLOP a token.

    A pass each exponentiates what was mapped, and normalises the output. Where a sequence comes in slices the state is
    read and written.
    """
    w, dtype = shard.width, shard.recipe.activations
    mapped, output = _mapped(shard), shard.tokens * shard.query_features
    state = () if shard.slices == 1 else (memory_pass(2 * state_nbytes(shard), dtype=dtype),)
    return (
        _map(shard),
        memory_pass(2 * w * mapped, dtype=dtype),
        _add_up(shard),
        _read(shard),
        memory_pass(2 * w * output + 4 * shard.tokens * shard.heads, dtype=dtype),
        *state,
    )


def _core_backward(shard: Shard) -> tuple[Kernel, ...]:
    """Gradients of queries, keys and values: 14·a·M·d FLOP a token.

    The state is added up again, and its gradient from the last token to the first; each of the three gradients reads
    one of them; the random features have none. Where a sequence comes in slices the state before a slice is what is
    left when the slice is taken off, and both states are read and written.

    References
    ----------
    Likhosherstov et al., Sub-Linear Memory: How to Make Performers SLiM, 2020 (arXiv 2012.11346).
    """
    w, dtype = shard.width, shard.recipe.activations
    mapped, output = _mapped(shard), shard.tokens * shard.query_features
    state = () if shard.slices == 1 else (memory_pass(4 * state_nbytes(shard), dtype=dtype),)
    return (
        memory_pass(3 * w * output + 4 * shard.tokens * shard.heads, dtype=dtype),
        _add_up(shard),
        _read(shard, gradient=True),
        _add_up(shard),
        _read(shard, gradient=True),
        _read(shard),
        memory_pass(3 * w * mapped, dtype=dtype),
        _map(shard, gradient=True),
        *state,
    )


def _map(shard: Shard, *, gradient: bool = False) -> Kernel:
    """Queries and keys of width d times the d × M random features, or their gradients back."""
    rows, d, features = 2 * shard.tokens * shard.heads, shard.model.head_dim, _features(shard)
    columns, inner = (d, features) if gradient else (features, d)
    return gemm(rows, columns, inner, dtype=shard.recipe.products)


def _add_up(shard: Shard) -> Kernel:
    """M × d sums over the tokens, a head and sequence."""
    return gemm(_features(shard), shard.model.head_dim, _length(shard), batch=_batch(shard), dtype=_products(shard))


def _read(shard: Shard, *, gradient: bool = False) -> Kernel:
    """Tokens times a state, of M columns where the gradient of what was mapped is asked for, else of d."""
    columns, inner = shard.model.head_dim, _features(shard)
    if gradient:
        columns, inner = inner, columns
    return gemm(_length(shard), columns, inner, batch=_batch(shard), dtype=_products(shard))


def _length(shard: Shard) -> int:
    return shard.tokens // shard.micro_batch


def _batch(shard: Shard) -> int:
    return shard.micro_batch * shard.heads


def _products(shard: Shard) -> str:
    return shard.recipe.products


def _piece(what: str, *kernels: Kernel, weight: bool = False) -> Piece:
    return Piece(op=Compute(name=f"{_NAME} {what}", kind=_KIND, kernels=kernels), weight=weight)
