"""What fills each store to its peak: a GPU, the host memory and the drives of a node, the file system of the site.

A GPU is filled by the ranks on it, of several jobs at once; host memory and drives by all ranks of the node; a file
system by all ranks there are. Pools count with their whole size from the start, once for each place that has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.analysis.peak import Peak, peak_together
from clustersim.topology.topology import Topology
from clustersim.trace.record import LaneRecord, Record

__all__ = ["StorePeak", "fullest", "store_peaks"]

_STORE_OF = {"host_pinned": "host", "host_pageable": "host"}
"""Tiers that are parts of one store; the others are stores by themselves."""

_OF_NODE, _OF_SITE = ("host", "nvme"), "file_system"


@dataclass(frozen=True, kw_only=True, slots=True)
class StorePeak:
    """The most that one store holds.

    Attributes
    ----------
    store : str
        ``gpu``, ``host``, ``nvme`` or ``file_system``
    num_ranks : int
        ranks that fill it together
    nbytes : int
        [B]
    capacity_bytes : int or None
        None where nothing says how much there is [B]
    job, rank : int
        whose allocation reached the peak; the representative of its class
    stage : int or None
        virtual pipeline stage of the op, None where the program has none
    op : str or None
        name of the op that allocated; None when the resident bytes alone are the peak
    by_category, by_tier : Mapping[str, int]
        what is held at the peak, tiers or categories together [B]
    """

    store: str
    num_ranks: int
    nbytes: int
    capacity_bytes: int | None
    job: int
    rank: int
    stage: int | None
    op: str | None
    by_category: Mapping[str, int]
    by_tier: Mapping[str, int]

    @property
    def category(self) -> str:
        """What takes most of it."""
        return max(self.by_category, key=self.by_category.__getitem__)

    @property
    def over_bytes(self) -> int:
        """What it lacks, negative where there is room; 0 where nothing says how much there is [B]."""
        return 0 if self.capacity_bytes is None else self.nbytes - self.capacity_bytes


def fullest(peaks: Iterable[StorePeak]) -> dict[str, StorePeak]:
    """By store, the place with the least room left; where that is not known, with the most in it."""
    found: dict[str, StorePeak] = {}
    for one in peaks:
        best = found.get(one.store)
        if best is None or (one.over_bytes, one.nbytes) > (best.over_bytes, best.nbytes):
            found[one.store] = one
    return found


def store_peaks(record: Record, topology: Topology) -> Iterator[StorePeak]:
    """One entry for each store and each different way in which ranks share one."""
    devices = [np.arange(job.num_ranks) if job.devices is None else job.devices for job in record.jobs]
    device, lane = np.concatenate(devices), np.concatenate(record.lane_of)
    for numbers, counts, place in _shared(device, lane, topology.gpu_of[device]):
        capacity = topology.gpus[topology.gpu_of[place]].memory_bytes
        yield from _filled(record, numbers, counts, {"gpu": capacity}, ("gpu",))
    tiers = {key.partition("/")[0] for one in record.lanes for key in (*one.arrays.memory_keys, *one.resident)}
    tiers |= {pool.memory.partition("/")[0] for job in record.jobs for pool in job.pools.values() if pool.nbytes}
    if {_STORE_OF.get(tier, tier) for tier in tiers} & set(_OF_NODE):
        for numbers, counts, _ in _shared(topology.node_of[device], lane, np.zeros_like(lane)):
            yield from _filled(record, numbers, counts, topology.tier_bytes, _OF_NODE)
    if _OF_SITE in tiers:
        numbers, counts = np.unique(lane, return_counts=True)
        yield from _filled(record, numbers, counts, topology.tier_bytes, (_OF_SITE,))


def _shared(
    place: NDArray[np.int64], lane: NDArray[np.int64], kind: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], int]]:
    """The different sets of lanes found at one place: lanes, ranks of each, one such place.

    Places of another kind make another set.
    """
    pairs, first, count = np.unique(place * (lane.max() + 1) + lane, return_index=True, return_counts=True)
    at, what, kind = pairs // (lane.max() + 1), lane[first], kind[first]
    begins = np.flatnonzero(np.diff(at, prepend=-1))
    sizes = np.diff(begins, append=len(at))
    code = kind[begins]
    for column in range(int(sizes.max(initial=0))):
        here = np.minimum(begins + column, len(at) - 1)
        for part in (what, count):
            member = np.where(sizes > column, part[here] + 1, 0)
            _, code = np.unique(code * (int(member.max()) + 1) + member, return_inverse=True)
    for k in np.unique(code, return_index=True)[1].tolist():
        mine = slice(int(begins[k]), int(begins[k] + sizes[k]))
        yield what[mine], count[mine], int(at[begins[k]])


def _filled(
    record: Record,
    numbers: NDArray[np.int64],
    counts: NDArray[np.int64],
    capacity: Mapping[str, int],
    stores: Iterable[str],
) -> Iterator[StorePeak]:
    lanes = [record.lanes[k] for k in numbers.tolist()]
    for store, top in peak_together(
        lanes, lambda tier: _STORE_OF.get(tier, tier), counts=counts.tolist(), beside=_pools(record, lanes)
    ).items():
        if store in stores:
            yield _described(lanes[top.lane], top, store, int(counts.sum()), capacity.get(store))


def _pools(record: Record, lanes: Iterable[LaneRecord]) -> dict[str, int]:
    """Bytes of pools that these ranks share; those of single ranks are in the lanes' own."""
    found: dict[str, int] = {}
    seen: set[tuple[int, str]] = set()
    for lane in lanes:
        for name in lane.arrays.pools:
            pool = record.jobs[lane.job].pools.get(name)
            if pool is not None and pool.nbytes and pool.scope != "rank" and (lane.job, name) not in seen:
                seen.add((lane.job, name))
                found[pool.memory] = found.get(pool.memory, 0) + pool.nbytes
    return found


def _described(lane: LaneRecord, top: Peak, store: str, num_ranks: int, capacity: int | None) -> StorePeak:
    arrays = lane.arrays
    op = top.op % len(arrays) if top.op >= 0 else -1
    stage = int(arrays.stage[op]) if op >= 0 else -1
    if stage < 0:
        known = arrays.stage[arrays.stage >= 0]
        stage = int(known.min()) if len(known) else -1
    return StorePeak(
        store=store,
        num_ranks=num_ranks,
        nbytes=top.nbytes,
        capacity_bytes=capacity,
        job=lane.job,
        rank=lane.rank,
        stage=stage if stage >= 0 else None,
        op=arrays.ops[arrays.op[op]].name if op >= 0 else None,
        by_category=top.by_category,
        by_tier=top.by_tier,
    )
