"""Gradient buckets: which weights are reduced together, and after which part of the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Bucket", "buckets", "default_bucket_parameters"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """Weights of neighbouring blocks.

    Parameters
    ----------
    first_block : int
        the block of its chunk that the backward pass reaches last and the forward pass first
    blocks : tuple[int, ...]
        all that have weights in it, in the order of the backward pass
    parameters : int
        weights on this rank
    """

    first_block: int
    blocks: tuple[int, ...]
    parameters: int


def default_bucket_parameters(dp: int) -> int:
    """max(40·10⁶, 10⁶·dp): the rule of Megatron-Core's ``DistributedDataParallel`` when no size is given."""
    return max(40_000_000, 1_000_000 * dp)


def buckets(parameters: Sequence[int], *, at_least: int | None) -> tuple[Bucket, ...]:
    """Buckets of one chunk in the order in which the backward pass fills them.

    A bucket is closed by the block that brings it to ``at_least`` parameters; what is left at the end forms the last.
    Whole blocks only: a real bucket may end inside one.

    Parameters
    ----------
    parameters : Sequence[int]
        weights of each block of the chunk on this rank, in forward order
    at_least : int, optional
        None puts all in one bucket
    """
    found: list[Bucket] = []
    pending: list[int] = []
    total = 0
    for block in reversed(range(len(parameters))):
        if not parameters[block]:
            continue
        pending.append(block)
        total += parameters[block]
        if at_least is not None and total >= at_least:
            found.append(Bucket(first_block=block, blocks=tuple(pending), parameters=total))
            pending, total = [], 0
    if pending:
        found.append(Bucket(first_block=pending[-1], blocks=tuple(pending), parameters=total))
    return tuple(found)
