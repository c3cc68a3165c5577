"""Whether a strategy makes sense for a number of ranks: what an own one may get wrong."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.workload.sharding.sharding import Sharding

__all__ = ["incoherent"]


def incoherent(sharding: Sharding, *, ranks: int, cp: int = 1) -> Iterator[str]:
    """Rules that a strategy breaks, as sentences that go on from its name.

    Parameters
    ----------
    sharding : Sharding
    ranks : int
        that hold the same weights
    cp : int
        of these, neighbours that share the tokens of a sequence, which no inner group may part
    """
    splits = {name: getattr(sharding, name) for name in ("weights", "gradients", "optimizer", "inner")}
    uneven = {name: split for name, split in splits.items() if split < 1 or ranks % split}
    if uneven:
        yield from (f"{name}: {split} must divide the {ranks} ranks" for name, split in uneven.items())
        return
    if sharding.optimizer % sharding.gradients or sharding.optimizer % sharding.weights:
        yield (
            f"optimizer: {sharding.optimizer} must be a multiple of gradients {sharding.gradients} "
            f"and of weights {sharding.weights}"
        )
    moves = (*sharding.gather, *sharding.gather_again, *sharding.reduce, *sharding.refresh, *sharding.exchange)
    over = {move.over for move in moves}
    apart = 1 < sharding.inner < ranks
    if over & {"inner", "outer"} and not apart:
        yield f"inner: {sharding.inner} must be between 1 and {ranks} for movements over inner or outer groups"
    if apart and sharding.inner % cp:
        yield f"inner: {sharding.inner} must be a multiple of cp {cp}"
    if bool(sharding.gather) != (sharding.weights > 1):
        yield f"gather: must name movements exactly when weights are split, over {sharding.weights} here"
    if bool(sharding.gather_again) != (sharding.weights > 1 and not sharding.keeps):
        yield "gather_again: must name movements exactly when weights are split and not kept"
    if sharding.optimizer > sharding.weights and not sharding.refresh:
        yield "refresh: must bring back weights, of which each rank updates a part only"
    if ranks > 1 and not sharding.reduce and not sharding.exchange:
        yield f"reduce: must name movements, or exchange, for {ranks} ranks to learn together"
    if sharding.gradients > 1 and not sharding.each_micro_batch:
        yield "each_micro_batch: must be true where nobody holds whole gradients"
    if sharding.prefetch < 0 or sharding.bucket < 0 or sharding.sync_every < 1:
        yield "prefetch and bucket must not be negative, sync_every at least 1"
    if sharding.sync_every > 1 and not sharding.exchange:
        yield f"exchange: must name movements for every {sharding.sync_every} steps"
