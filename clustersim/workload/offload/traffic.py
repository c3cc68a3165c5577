"""Copies and accesses of drives as a policy wants them, and what passes fetch of weights that are not on the GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from clustersim.workload.offload.place import Tier
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.op import Copy, HostWork, Op, Storage

__all__ = ["by_tier", "cast_pass", "copy", "fetch", "host_pass", "read", "touch", "write"]

_READS: dict[Tier, Literal["nvme_read", "fs_read"]] = {"nvme": "nvme_read", "file_system": "fs_read"}
_WRITES: dict[Tier, Literal["nvme_write", "fs_write"]] = {"nvme": "nvme_write", "file_system": "fs_write"}


def copy(
    policy: OffloadPolicy,
    name: str,
    kind: Literal["h2d", "d2h"],
    nbytes: int,
    *,
    pinned: bool | None = None,
    turns: float = 1.0,
) -> Copy:
    """A copy between the GPU and the host's buffers, which are as the policy says or, where given, ``pinned``."""
    pageable = not (policy.pinned if pinned is None else pinned)
    return Copy(name=name, kind=kind, nbytes=nbytes, pageable=pageable, memory=policy.memory, turns=turns)


def host_pass(policy: OffloadPolicy, name: str, kind: str, nbytes: int, *, threads: int | None = None) -> HostWork:
    """A pass of the CPU over what lies on the host, other than the update; None: by all threads that passes have."""
    _, part = policy.parts
    return HostWork(name=name, kind=kind, nbytes=nbytes, threads=threads, part=part, memory=policy.memory)


def cast_pass(policy: OffloadPolicy, name: str, nbytes: int) -> HostWork:
    """A pass that turns one format into another."""
    return host_pass(policy, name, "cast", nbytes, threads=policy.cast_threads)


def touch(policy: OffloadPolicy, nbytes: int, *, threads: int | None = None) -> HostWork:
    """The first touch of memory by so many threads: the operating system hands out its pages and clears them."""
    return host_pass(policy, "touch memory", "touch", nbytes, threads=threads or policy.cast_threads)


def read(tier: Tier, name: str, nbytes: int) -> Storage:
    """A read of drives or of the file system."""
    return Storage(name=name, kind=_READS[tier], nbytes=nbytes)


def write(tier: Tier, name: str, nbytes: int) -> Storage:
    """A write to drives or to the file system."""
    return Storage(name=name, kind=_WRITES[tier], nbytes=nbytes)


def by_tier(
    policy: OffloadPolicy,
    subgroups: Iterable[Subgroup],
    blocks: Sequence[int],
    what: Literal["weights", "gradients"],
) -> dict[Tier, int]:
    """Weights of some blocks by the tier that they, or their gradients, are on."""
    found: dict[Tier, int] = {}
    for subgroup in subgroups:
        here = sum(weights for block, weights in subgroup.parts if block in blocks)
        if here:
            tier: Tier = getattr(policy.place(subgroup), what)
            found[tier] = found.get(tier, 0) + here
    return found


def fetch(policy: OffloadPolicy, subgroups: Iterable[Subgroup], blocks: Sequence[int], *, width: int) -> Iterator[Op]:
    """Bring this rank's weights of some blocks to its GPU, from drives through the host.

    Parameters
    ----------
    policy : OffloadPolicy
    subgroups : Iterable[Subgroup]
        of the chunk
    blocks : Sequence[int]
    width : int
        bytes of a weight [B]
    """
    tiers = by_tier(policy, subgroups, blocks, "weights")
    away = {tier: weights * width for tier, weights in tiers.items() if tier != "gpu"}
    for tier, nbytes in away.items():
        if tier != "host":
            yield read(tier, "read weights", nbytes)
    if away:
        yield copy(policy, "fetch weights", "h2d", sum(away.values()))
