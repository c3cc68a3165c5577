"""The collectives between the ranks that share a layer."""

from __future__ import annotations

from clustersim.workload.op import Collective
from clustersim.workload.shard import Shard

__all__ = ["gather", "reduction"]


def gather(shard: Shard, what: str) -> Collective:
    """All-gather of the tokens' parts into R × h, under sequence parallelism."""
    return _collective("all_gather", f"all-gather {what}", shard.full_nbytes)


def reduction(shard: Shard, what: str) -> Collective:
    """Sum of the ranks' partial R × h; under sequence parallelism each keeps its part of the tokens."""
    if shard.sequence_parallel:
        return _collective("reduce_scatter", f"reduce-scatter {what}", shard.full_nbytes)
    return _collective("all_reduce", f"all-reduce {what}", shard.full_nbytes)


def _collective(kind: str, name: str, nbytes: int) -> Collective:
    return Collective(name=name, kind=kind, slot="tp", nbytes=nbytes, axis="tp")
