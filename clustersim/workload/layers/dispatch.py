"""The collectives that bring copies of tokens to their experts, and the results back."""

from __future__ import annotations

from clustersim.workload.exchange import Exchange
from clustersim.workload.expert_shard import ExpertShard
from clustersim.workload.op import Collective
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard

__all__ = ["ROUTING_MAPS", "TOKEN_COUNTS", "back", "counts", "gather_copies", "scatter_copies", "there"]


TOKEN_COUNTS = "all-gather token counts"
ROUTING_MAPS = "all-gather routing maps"
"""What the host reads, or what comes of it, before it can size the exchange that follows."""


def counts(shard: Shard, experts: Experts, share: ExpertShard) -> Collective:
    """All-gather of how many copies each rank has for each expert, 8 bytes each: without it none can receive.

    HybridEP gathers the whole map in its place, a byte for each token and each of all experts. Left out: the pass over
    it, beside other kernels, that finds where each token goes.

    References
    ----------
    Megatron-Core, ``moe/token_dispatcher.py``, preprocess of the all-to-all dispatcher; DeepEP, branch hybrid-ep,
    ``csrc/hybrid_ep/executor/executor.cu``, ``allgather_routing_map``.
    """
    name, width = (ROUTING_MAPS, shard.rows) if share.gathers_maps else (TOKEN_COUNTS, 8)
    nbytes = width * experts.num_experts * share.ep
    return Collective(name=name, kind="all_gather", slot="ep", nbytes=nbytes, axis="ep")


def there(shard: Shard, share: ExpertShard, what: str, *, quantised: bool = False) -> Collective:
    """All-to-all of this rank's copies.

    Parameters
    ----------
    shard : Shard
    share : ExpertShard
        whole, or of a chunk
    what : str
        for the trace
    quantised : bool
        as linear layers read them
    """
    elements = share.sent * shard.model.expert_width
    nbytes = shard.recipe.activation_operand.nbytes(elements) if quantised else shard.width * elements
    return _exchange(f"dispatch {what}", nbytes, share.there)


def back(shard: Shard, share: ExpertShard, what: str) -> Collective:
    """All-to-all of what became of them, the same way back."""
    return _exchange(f"combine {what}", shard.width * share.sent * shard.model.expert_width, share.back)


def gather_copies(shard: Shard, share: ExpertShard, what: str) -> Collective:
    """All-gather of the copies of all ranks that share the experts: each has a part of their width."""
    return _shared("all_gather", f"all-gather {what}", shard, share)


def scatter_copies(shard: Shard, share: ExpertShard, what: str) -> Collective:
    """Sum of their partial results; each keeps those of its own copies."""
    return _shared("reduce_scatter", f"reduce-scatter {what}", shard, share)


def _shared(kind: str, name: str, shard: Shard, share: ExpertShard) -> Collective:
    nbytes = shard.width * share.received * shard.model.expert_width
    return Collective(name=name, kind=kind, slot="etp", nbytes=nbytes, axis="tp")


def _exchange(name: str, nbytes: int, algorithm: str | Exchange | None) -> Collective:
    return Collective(name=name, kind="all_to_all", slot="ep", nbytes=nbytes, axis="ep", algorithm=algorithm)
