"""The kernels that layers are made of, from their shapes.

FLOP are those of the matrix products, two a multiply-add. Element-wise passes count none: they are bound by
memory, and the conventions of MFU leave them out.
"""

from __future__ import annotations

from collections.abc import Iterable

from clustersim.hardware.alignment import is_aligned
from clustersim.hardware.kernel import Kernel
from clustersim.workload.matrix import Matrix
from clustersim.workload.module_dtypes import by_quantisation
from clustersim.workload.number_format import FORMATS, WIDTH, Format
from clustersim.workload.precision import Recipe
from clustersim.workload.shard import Shard
from clustersim.workload.unaligned import on_units

__all__ = [
    "dropout_backward",
    "gemm",
    "linear",
    "linear_input_gradient",
    "linear_weight_gradient",
    "memory_pass",
    "weight_cast",
    "weight_gradient_nbytes",
]


def gemm(m: int, n: int, k: int, *, dtype: str, batch: int = 1, aligned: bool = True) -> Kernel:
    """``batch`` products of (m × k)·(k × n): 2·m·n·k FLOP and w·(m·k + k·n + m·n) bytes each.

    ``aligned`` is as in :class:`~clustersim.hardware.kernel.Kernel`.
    """
    return Kernel(
        kind="gemm",
        dtype=dtype,
        flops=2 * batch * m * n * k,
        nbytes=FORMATS[dtype].nbytes(batch * (m * k + k * n + m * n)),
        m=m,
        n=n,
        k=k,
        batch=batch,
        aligned=aligned,
    )


def linear(
    shard: Shard, features_in: int, features_out: int, *, tokens: int | None = None, gathered: bool = False
) -> tuple[Kernel, ...]:
    """Y = X·W over ``tokens``, else a micro-batch; where the recipe quantises, X is cast first, Y written uncast.

    ``gathered``: what is cast comes from the ranks that share the layer.
    """
    recipe, rows = shard.recipe, shard.tokens if tokens is None else tokens
    product = _product(
        rows,
        features_out,
        features_in,
        left=recipe.activation_operand,
        right=recipe.weight_operand,
        written=shard.width * rows * features_out,
        sides=(features_in, features_out),
    )
    return (*_cast(shard, rows * features_in, gathered=gathered), on_units(product, shard.unaligned))


def linear_input_gradient(
    shard: Shard, features_in: int, features_out: int, *, tokens: int | None = None, gathered: bool = False
) -> tuple[Kernel, ...]:
    """dX = dY·Wᵀ; where the recipe quantises, dY is cast first, for the weight gradient too."""
    recipe, rows = shard.recipe, shard.tokens if tokens is None else tokens
    product = _product(
        rows,
        features_in,
        features_out,
        left=recipe.activation_operand,
        right=recipe.weight_operand,
        written=shard.width * rows * features_in,
        sides=(features_in, features_out),
        promoted=_promoted(shard),
    )
    return (*_cast(shard, rows * features_out, gathered=gathered), on_units(product, shard.unaligned))


def linear_weight_gradient(
    shard: Shard, features_in: int, features_out: int, *, tokens: int | None = None
) -> tuple[Kernel, ...]:
    """dW += Xᵀ·dY, added to the gradient in the GEMM's epilogue: the gradient is read and written in its own dtype.

    Not fused, the product writes what a pass then adds. Both operands were cast before: X in the forward pass, dY for
    the gradient of the input.
    """
    form, rows = shard.recipe.activation_operand, shard.tokens if tokens is None else tokens
    weights, gradient = features_in * features_out, WIDTH[shard.gradient_dtype]
    fused = "gradients" in shard.fusion
    product = _product(
        features_in,
        features_out,
        rows,
        left=form,
        right=form,
        written=(2 * gradient if fused else shard.width) * weights,
        sides=(features_in, features_out),
        promoted=_promoted(shard),
        read_back=gradient * weights if fused else 0,
    )
    product = on_units(product, shard.unaligned)
    return (product,) if fused else (memory_pass((shard.width + 2 * gradient) * weights, dtype="fp32"), product)


def _promoted(shard: Shard) -> bool:
    """Whether products of the backward pass keep their sums in fp32 at a cost."""
    return shard.recipe.quantisation is not None and shard.recipe.quantisation.promoted


def _product(
    m: int,
    n: int,
    k: int,
    *,
    left: Format,
    right: Format,
    written: int,
    sides: tuple[int, int],
    promoted: bool = False,
    read_back: int = 0,
) -> Kernel:
    """(m × k)·(k × n) of operands in formats of their own; ``written`` [B] is the traffic of the result.

    Tensors of a layer are contiguous along features, ``sides``, not along tokens.
    """
    return Kernel(
        kind="gemm",
        dtype=left.dtype,
        flops=2 * m * n * k,
        nbytes=left.nbytes(m * k) + right.nbytes(k * n) + written,
        m=m,
        n=n,
        k=k,
        aligned=is_aligned(*sides),
        promoted=promoted,
        read_back=read_back,
    )


def _cast(shard: Shard, num_elements: int, *, gathered: bool) -> tuple[Kernel, ...]:
    """The pass that quantises a tensor of this many elements, both copies of it; none without quantisation."""
    quantisation = shard.recipe.quantisation
    if quantisation is None:
        return ()
    if gathered and shard.gathers_cast:
        nbytes = quantisation.gathered_cast_nbytes(
            num_elements, width=shard.width, ranks=shard.tp, compiled=shard.compiled
        )
    else:
        nbytes = quantisation.cast_nbytes(num_elements, width=shard.width, compiled=shard.compiled)
    return (memory_pass(nbytes, dtype=shard.recipe.activations),)


def weight_cast(recipe: Recipe, matrices: Iterable[Matrix]) -> tuple[Kernel, ...]:
    """The passes that quantise hidden matrices, both copies of each, one a format; none without quantisation.

    Once a step where whole weights are held, after every gather where they are split.
    """
    width, dtype = recipe.gathered_width, recipe.gathered or recipe.weights
    return tuple(
        memory_pass(own.weight_cast_nbytes(number, width=width), dtype=dtype)
        for own, number in by_quantisation(recipe, matrices).items()
    )


def weight_gradient_nbytes(shard: Shard, *matrices: tuple[int, int], tokens: int | None = None) -> int:
    """What the weight gradients of ``matrices`` read: the input and the output's gradient of each [B]."""
    rows = shard.tokens if tokens is None else tokens
    return sum(shard.recipe.activation_operand.nbytes(rows * (m + n)) for m, n in matrices)


def dropout_backward(shard: Shard) -> tuple[Kernel, ...]:
    """A sublayer's output gradient through its mask of one byte an element, over what this rank holds; else none."""
    if not shard.dropout:
        return ()
    nbytes = (2 * shard.width + 1) * shard.rows * shard.model.hidden
    return (memory_pass(nbytes, dtype=shard.recipe.activations),)


def memory_pass(nbytes: int, *, dtype: str, form: str = "", count: int = 1) -> Kernel:
    """A kernel that reads and writes ``nbytes`` [B] in all; ``form`` is what it does where it is not element-wise."""
    return Kernel(kind="memory", dtype=dtype, flops=0, nbytes=nbytes, form=form, count=count)
