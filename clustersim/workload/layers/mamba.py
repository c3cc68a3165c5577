"""The Mamba mixer: a projection in, a short convolution, the recurrence, a gate, a projection out."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.kernels import (
    dropout_backward,
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.scan import Scan
from clustersim.workload.layers.writing import Writing
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Collective
from clustersim.workload.shape.mamba import Mamba
from clustersim.workload.shard import Shard

__all__ = ["mamba", "mamba_kept"]

_KIND = "mamba"


def mamba(shard: Shard) -> Block:
    """A Mamba or Mamba-2 mixer in place of attention; ranks split its channels.

    Version 1 makes step sizes and the vectors of the state from its channels, so that ranks sum these, and their
    gradients, in the middle of the block. In version 2 they come from the projection in, a part of the groups a rank,
    and the backward pass runs the convolution again in place of keeping its result.

    Raises
    ------
    ValueError
        when the model has no mixer

    References
    ----------
    ``state-spaces/mamba``, ``ops/triton/ssd_combined.py``, ``MambaSplitConv1dScanCombinedFn``, which the mixer of
    Megatron-LM calls too.
    """
    scan = _scan(shard)
    matrices = _matrices(shard, scan.mamba)
    kept = mamba_kept(shard)
    own = sum(rows * columns for rows, columns in matrices.values())
    bias = scan.mamba.bias * shard.model.hidden
    wide = shard.width * shard.tokens * matrices["mamba_in"][1]
    return Block(
        kind=_KIND,
        forward=_forward(scan, matrices),
        backward=_backward(scan, matrices),
        parts=(norm_part(shard, kept),),
        parameters=own + _other_parameters(scan) + scan.mamba.bias * matrices["mamba_in"][1] + bias,
        replicated_parameters=bias,
        dtype=_shard(shard, "mamba_in").products_as,
        matrices=tuple(
            Matrix(features_in=rows, features_out=columns, dtype=_shard(shard, name).products_as)
            for name, (rows, columns) in matrices.items()
        ),
        gathers=True,
        reduces=True,
        kept=kept_nbytes(kept),
        weight_kept=sum(weight_gradient_nbytes(_shard(shard, name), matrix) for name, matrix in matrices.items()),
        forward_workspace=shard.full_nbytes,
        backward_workspace=shard.full_nbytes + wide,
    )


def mamba_kept(shard: Shard) -> tuple[Kept, ...]:
    """What it keeps.

    Raises
    ------
    ValueError
        when the model has no mixer
    """
    scan = _scan(shard)
    matrices = _matrices(shard, scan.mamba)
    w, h = shard.width * shard.tokens, shard.model.hidden
    read, last = (_shard(shard, name).recipe.activation_operand.nbytes for name in ("mamba_in", "mamba_out"))
    tensors = [
        Kept("mamba input", _KIND, read(shard.rows * h), part="norm"),
        Kept("projected channels", _KIND, w * matrices["mamba_in"][1]),
    ]
    if scan.mamba.version == 1:
        tensors.append(Kept("channels after the convolution", _KIND, w * scan.conv_channels))
        tensors.append(Kept("vectors of the state", _KIND, w * matrices["mamba_select"][1]))
        tensors.append(Kept("step sizes", _KIND, w * scan.inner))
    else:
        tensors.append(Kept("recurrence before its norm", _KIND, w * scan.inner))
    tensors.append(Kept("mamba output", _KIND, last(shard.tokens * scan.inner)))
    tensors.append(Kept("mamba mask of dropout", _KIND, shard.rows * h * shard.dropout))
    return tuple(tensors)


def _scan(shard: Shard) -> Scan:
    if shard.model.mamba is None:
        raise ValueError(f"mamba: None must be given for a mixer in {shard.model.name}")
    return Scan(shard=shard, mamba=shard.model.mamba)


def _shard(shard: Shard, name: str) -> Shard:
    """In the number formats of a matrix."""
    return shard.of_module("mamba_out" if name == "mamba_out" else "mamba_in")


def _matrices(shard: Shard, mamba: Mamba) -> dict[str, tuple[int, int]]:
    """Of this rank as (features in, features out)."""
    found = mamba.matrices(shard.model.hidden)
    split_rows = ("mamba_select", "mamba_out")
    return {
        name: (rows // shard.tp, columns) if name in split_rows else (rows, columns // shard.tp)
        for name, (rows, columns) in found.items()
    }


def _other_parameters(scan: Scan) -> int:
    """Convolution, step sizes, decays, skips and, in version 2, the norm behind the recurrence."""
    mamba = scan.mamba
    found = (mamba.conv + mamba.conv_bias) * scan.conv_channels
    if mamba.version == 1:
        return found + scan.inner * (2 + mamba.state)
    return found + 3 * mamba.num_heads // scan.shard.tp + scan.inner


def _forward(scan: Scan, matrices: dict[str, tuple[int, int]]) -> tuple[Piece, ...]:
    shard, writing, name = scan.shard, Writing(_KIND), f"{_KIND} forward"
    writing.kernels(
        name, *linear(_shard(shard, "mamba_in"), *matrices["mamba_in"]), scan.convolution(passes=2), after=()
    )
    if scan.mamba.version == 1:
        writing.kernels(name, *linear(_shard(shard, "mamba_select"), *matrices["mamba_select"]))
        if shard.tp > 1:
            writing.collective(_sum(shard, matrices, "vectors of the state"))
        writing.kernels(name, *linear(_shard(shard, "mamba_step"), *matrices["mamba_step"]))
    writing.kernels(
        name, *scan.forward(), *_gate(scan, passes=3), *linear(_shard(shard, "mamba_out"), *matrices["mamba_out"])
    )
    return writing.pieces()


def _backward(scan: Scan, matrices: dict[str, tuple[int, int]]) -> tuple[Piece, ...]:
    shard, writing = scan.shard, Writing(_KIND)
    name, weights = f"{_KIND} backward", f"{_KIND} weight gradient"
    writing.kernels(
        name,
        *dropout_backward(shard),
        *linear_input_gradient(_shard(shard, "mamba_out"), *matrices["mamba_out"]),
        after=(),
    )
    writing.kernels(weights, *linear_weight_gradient(_shard(shard, "mamba_out"), *matrices["mamba_out"]), weight=True)
    again = (scan.convolution(passes=2),) if scan.mamba.version == 2 else ()
    writing.kernels(name, *_gate(scan, passes=6), *again, *scan.backward())
    if scan.mamba.version == 1:
        inward, step, select = shard.of_module("mamba_in"), matrices["mamba_step"], matrices["mamba_select"]
        gradient = writing.kernels(name, *linear_input_gradient(inward, *step))
        writing.kernels(weights, *linear_weight_gradient(inward, *step), weight=True)
        if shard.tp > 1:
            gradient = writing.collective(_sum(shard, matrices, "gradients of the state's vectors"), after=(gradient,))
        writing.kernels(name, *linear_input_gradient(inward, *select), after=(gradient,))
        writing.kernels(weights, *linear_weight_gradient(inward, *select), weight=True)
    inputs = linear_input_gradient(_shard(shard, "mamba_in"), *matrices["mamba_in"])
    writing.kernels(name, scan.convolution(passes=3), *inputs)
    writing.kernels(weights, *linear_weight_gradient(_shard(shard, "mamba_in"), *matrices["mamba_in"]), weight=True)
    return writing.pieces()


def _gate(scan: Scan, *, passes: int) -> tuple[Kernel, ...]:
    """The gate and the norm of version 2; in version 1 the recurrence's kernel applies the gate."""
    if scan.mamba.version == 1:
        return ()
    nbytes = passes * scan.shard.width * scan.shard.tokens * scan.inner
    return (memory_pass(nbytes, dtype=scan.shard.recipe.activations),)


def _sum(shard: Shard, matrices: dict[str, tuple[int, int]], what: str) -> Collective:
    """Sum over ranks of what every channel adds to."""
    nbytes = shard.width * shard.tokens * matrices["mamba_select"][1]
    return Collective(name=f"all-reduce {what}", kind="all_reduce", slot="tp", nbytes=nbytes, axis="tp")
