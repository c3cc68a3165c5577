"""What a rank holds throughout a step, by tier, where some of it is offloaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.gradient_path import gradient_width, waits_in_flat_buffer
from clustersim.workload.offload.place import DRIVES, Tier
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.pools import STATES
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.precision import Recipe

__all__ = ["resident_bytes"]


def resident_bytes(
    policy: OffloadPolicy, subgroups: Sequence[Subgroup], *, recipe: Recipe, width: int, on_gpu: Mapping[str, int]
) -> Mapping[str, int]:
    """Bytes by memory key [B].

    What is off the GPU is counted in fp32, 4 bytes of weight and 8 of averages a parameter, with the gradient in the
    format that it waits in and the weights as the passes read them. Buffers for what comes from drives, a set for each
    kind of drive, hold the largest subgroup with its gradient; the same memory takes gradients on their way in the
    backward pass. What stays on the host from step to step keeps its place on the drives. The flat buffer of gradients
    is one tensor, whatever the subgroups are.

    Parameters
    ----------
    policy : OffloadPolicy
    subgroups : Sequence[Subgroup]
        of one kind of weights on a stage
    recipe : Recipe
    width : int
        bytes of a gradient on the GPU [B]
    on_gpu : Mapping[str, int]
        what the rank would hold of these weights without offloading, under ``gpu/weights``, ``gpu/gradients`` and
        ``gpu/optimizer``; its part of each that stays is in proportion to the weights
    """
    total = sum(subgroup.parameters for subgroup in subgroups)
    waits, state = gradient_width(policy, width), WIDTH["fp32"] * len(STATES)
    stays: Counter[str] = Counter()
    held: Counter[str] = Counter()
    from_drives: dict[Tier, dict[str, int]] = {}
    largest = max((subgroup.parameters for subgroup in subgroups), default=0)
    for subgroup in subgroups:
        n, place = subgroup.parameters, policy.place(subgroup)
        parts: tuple[tuple[str, Tier, int], ...] = (
            ("weights", place.weights, WIDTH[recipe.weights]),
            ("gradients", place.gradients, waits),
            ("optimizer", place.states, state),
        )
        for category, tier, each in parts:
            if tier == "gpu":
                stays[category] += n
            elif category == "gradients" and waits_in_flat_buffer(policy, tier):
                pass  # counted with the flat buffer, which holds them
            elif category == "optimizer":
                key = _key(policy, tier, pinned=policy.pinned_states)
                held[f"{key}/{category}"] += len(STATES) * _taken(policy, key, WIDTH["fp32"] * n)
            else:
                key = _key(policy, tier)
                held[f"{key}/{category}"] += _taken(policy, key, each * n)
        if extra := policy.host_nbytes(subgroup):
            held[f"{_key(policy, 'host')}/copies"] += round(extra * n)
        for category, tier, each in parts[1:]:
            if tier in DRIVES:
                from_drives.setdefault(tier, {})[category] = each
    if policy.flat_buffer:
        key = _key(policy, "host")
        held[f"{key}/flat buffer"] += _taken(policy, key, width * total)
    for widths in from_drives.values():
        passing = (policy.gradient_buffers or 0) * widths.get("gradients", 0)
        held[f"{_key(policy, 'host')}/buffers"] += max(policy.buffers * sum(widths.values()), passing) * largest
    kept = [policy.kept(subgroups, step) for step in range(policy.period)]
    if stay := max(sum(s.parameters for s in subgroups if s.index in indices) for indices in kept):
        held[f"{_key(policy, 'host')}/cache"] += state * stay
    for category, n in stays.items():
        held[f"gpu/{category}"] += on_gpu[f"gpu/{category}"] * n // total
    if not policy.each_micro_batch:
        held["gpu/gradients"] = on_gpu["gpu/gradients"]
    return held


def _key(policy: OffloadPolicy, tier: Tier, *, pinned: bool | None = None) -> str:
    if tier == "host":
        return "host_pinned" if (policy.pinned if pinned is None else pinned) else "host_pageable"
    return tier


def _taken(policy: OffloadPolicy, key: str, nbytes: int) -> int:
    """Bytes that an allocator takes for a tensor of ``nbytes``."""
    if policy.powers_of_two and key == "host_pinned" and nbytes:
        return 1 << (nbytes - 1).bit_length()
    return nbytes
