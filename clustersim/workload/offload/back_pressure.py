"""Gradients on their way to drives, when the host's buffers for them are full."""

from __future__ import annotations

from collections.abc import Sequence

from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.traffic import by_tier

__all__ = ["fills_up"]


def fills_up(policy: OffloadPolicy, subgroups: Sequence[Subgroup], groups: Sequence[Sequence[int]]) -> tuple[bool, ...]:
    """Of each group of blocks: behind its gradients there is no room for those of the next.

    The buffers hold ``policy.gradient_buffers`` times the weights of the largest subgroup. Where the next gradients do
    not fit, the backward pass waits until every buffer has been written, and starts again with all of them empty.

    Parameters
    ----------
    policy : OffloadPolicy
    subgroups : Sequence[Subgroup]
        of a chunk
    groups : Sequence[Sequence[int]]
        blocks of each, in the order of the backward pass

    References
    ----------
    DeepSpeed, ``runtime/swap_tensor/async_swapper.py``, ``AsyncTensorSwapper._make_swap_space``: with no buffer free,
    ``_flush_buffers_until_complete`` waits for all. Its buffers are not filled quite to the end, as it divides no
    tensor; this counts them as full.
    """
    if policy.gradient_buffers is None or not policy.each_micro_batch:
        return (False,) * len(groups)
    room = policy.gradient_buffers * max((subgroup.parameters for subgroup in subgroups), default=0)
    sent = [_to_drives(policy, subgroups, blocks) for blocks in groups]
    full, filled = [], 0
    for n, weights in enumerate(sent):
        filled += weights
        following = sent[n + 1] if n + 1 < len(sent) else 0
        full.append(weights > 0 and following > 0 and filled + following > room)
        filled = 0 if full[-1] else filled
    return tuple(full)


def _to_drives(policy: OffloadPolicy, subgroups: Sequence[Subgroup], blocks: Sequence[int]) -> int:
    """Weights of some blocks whose gradients wait on drives."""
    tiers = by_tier(policy, subgroups, blocks, "gradients")
    return sum(weights for tier, weights in tiers.items() if tier not in ("gpu", "host"))
