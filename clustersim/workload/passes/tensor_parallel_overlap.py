"""Products that compute on part of their tokens while others are on their way (Transformer Engine's userbuffers)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

from clustersim.workload.exchange import Exchange
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.product import Product
from clustersim.workload.op import Collective, Compute
from clustersim.workload.passes.tensor_parallel import gather, gathered_nbytes, reduction
from clustersim.workload.shard import Shard
from clustersim.workload.tensor_overlap import TensorOverlap

__all__ = ["as_tokens_come", "as_tokens_go"]


def as_tokens_come(
    pieces: Sequence[Piece],
    shard: Shard,
    overlap: TensorOverlap,
    *,
    what: str,
    then: Collective | None = None,
    cast: bool = False,
) -> tuple[Piece, ...]:
    """The pieces, and with them the gathering of the tokens that their first product takes part by part.

    ``ring``: a rank begins with its own R/t tokens. Meanwhile it sends them to the next rank and receives those of the
    rank before it, which it takes next and sends on in turn: t - 1 exchanges of w·R·h/t bytes. ``pipeline``: an
    all-gather brings the n-th part of every rank's tokens while the product takes the part before.

    Parameters
    ----------
    pieces : Sequence[Piece]
        of a block, at least one of them a product
    shard : Shard
        with sequence parallelism
    overlap : TensorOverlap
    what : str
        for the trace
    then : Collective, optional
        follows when all tokens have come; no piece waits for it
    cast : bool
        tokens are cast before they go

    References
    ----------
    NVIDIA Transformer Engine, ``common/comm_gemm_overlap``: ``split_overlap_ag`` of ``CommOverlapP2PBase``.
    Wang et al., Overlap Communication with Dependent Computation via Decomposition, 2023, section 5.
    """
    place = next(n for n, piece in enumerate(pieces) if piece.product is not None)
    whole = pieces[place]
    begin = ((place - 1,) if place else ()) if whole.after is None else whole.after
    parts: list[Piece] = []
    come: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    cuts = _parts(shard, overlap, overlap.gather)
    for n, tokens in enumerate(cuts):
        if overlap.gather == "pipeline" or n:
            ring = overlap.gather == "ring"
            op = (
                _exchange(shard, what, by=1, cast=cast) if ring else _cut(gather(shard, what, cast=cast), shard, tokens)
            )
            come = _append(parts, place, Piece(op=op, after=come or begin))
        if then is not None and n == len(cuts) - 1:
            _append(parts, place, Piece(op=then, after=come))
        done = _append(parts, place, _part(whole, shard, tokens, after=(*come, *done) or whole.after))
    return _spliced(pieces, place, parts, done)


def as_tokens_go(pieces: Sequence[Piece], shard: Shard, overlap: TensorOverlap, *, what: str) -> tuple[Piece, ...]:
    """The pieces, and with them the reduction of the tokens that their last product gives part by part.

    ``ring``: a part of the product goes to the rank that it belongs to while the next part is computed, a rank's own
    part last; then each adds up the t parts that it holds, reading t and writing one. ``pipeline``: a reduce-scatter of
    each part.

    Parameters
    ----------
    pieces : Sequence[Piece]
        of a block, at least one of them a product
    shard : Shard
        with sequence parallelism
    overlap : TensorOverlap
    what : str
        for the trace

    References
    ----------
    NVIDIA Transformer Engine, ``common/comm_gemm_overlap``: ``split_overlap_rs`` of ``CommOverlapP2PBase`` and of
    ``CommOverlapBase``.
    """
    place = max(n for n, piece in enumerate(pieces) if piece.product is not None)
    whole, cuts = pieces[place], _parts(shard, overlap, overlap.reduce)
    parts: list[Piece] = []
    gone: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    for n, tokens in enumerate(cuts):
        done = _append(parts, place, _part(whole, shard, tokens, after=done or whole.after))
        ring = overlap.reduce == "ring"
        if ring and n == len(cuts) - 1:
            kernel = memory_pass((shard.tp + 1) * shard.residual_nbytes, dtype=shard.recipe.activations)
            added = Compute(name=f"sum {what}", kind=_product(whole)[0].kind, kernels=(kernel,))
            _append(parts, place, Piece(op=added, after=(*gone, *done)))
            break
        op = _exchange(shard, what, by=n + 1) if ring else _cut(reduction(shard, what), shard, tokens)
        gone = _append(parts, place, Piece(op=op, after=(*gone, *done)))
    return _spliced(pieces, place, parts, done)


def _parts(shard: Shard, overlap: TensorOverlap, way: str) -> list[int]:
    """Tokens of each part: a rank's own, or an n-th of every rank's as evenly as it goes."""
    if way == "ring":
        return [shard.rows] * shard.tp
    ends = [shard.rows * n // overlap.num_chunks for n in range(overlap.num_chunks + 1)]
    return [shard.tp * (end - start) for start, end in pairwise(ends)]


def _part(whole: Piece, shard: Shard, tokens: int, *, after: tuple[int, ...] | None) -> Piece:
    """A product over some of the tokens: its matrix is read again for each part."""
    op, product = _product(whole)
    return Piece(op=replace(op, kernels=product.kernels(shard, tokens=tokens)), after=after)


def _product(whole: Piece) -> tuple[Compute, Product]:
    if not isinstance(whole.op, Compute) or whole.product is None:
        raise ValueError(f"whole: {whole} must be a product")
    return whole.op, whole.product


def _cut(whole: Collective, shard: Shard, tokens: int) -> Collective:
    """A collective of R × h over some of the tokens."""
    return replace(whole, nbytes=whole.nbytes * tokens // shard.tokens)


def _exchange(shard: Shard, what: str, *, by: int, cast: bool = False) -> Collective:
    """Every rank sends the tokens of one rank to the one ``by`` after it."""
    return Collective(
        name=f"exchange {what}",
        kind="all_to_all",
        slot="tp",
        nbytes=gathered_nbytes(shard, shard.rows, cast=cast),
        axis="tp",
        algorithm=_shift(shard.tp, by),
    )


@cache
def _shift(num_ranks: int, by: int) -> Exchange:
    return Exchange(share=[[float((i + by) % num_ranks == j) for j in range(num_ranks)] for i in range(num_ranks)])


def _append(parts: list[Piece], place: int, piece: Piece) -> tuple[int]:
    """Put a piece last; its number among all of the block."""
    parts.append(piece)
    return (place + len(parts) - 1,)


def _spliced(pieces: Sequence[Piece], place: int, parts: Sequence[Piece], done: tuple[int, ...]) -> tuple[Piece, ...]:
    """Parts in the place of one piece; what waited for it waits for its last part."""
    more = len(parts) - 1
    rest = []
    for n, piece in enumerate(pieces[place + 1 :], place + 1):
        apart = piece.after is None and n == place + 1 and done != (place + more,)
        after = (place,) if apart else piece.after
        if after is not None:
            after = tuple(sorted({*(k + more * (k > place) for k in after if k != place), *(done * (place in after))}))
        rest.append(replace(piece, after=after))
    return (*pieces[:place], *parts, *rest)
