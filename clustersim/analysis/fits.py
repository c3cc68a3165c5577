"""Whether a job fits: the bytes that ranks hold against what their GPUs, hosts and drives have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.analysis.memory import Peak, peak_together
from clustersim.topology.topology import Topology
from clustersim.trace.record import LaneRecord, Record

__all__ = ["OutOfMemory", "out_of_memory"]

_HOST_TIERS = ("host_pinned", "host_pageable")


@dataclass(frozen=True, kw_only=True, slots=True)
class OutOfMemory:
    """The store that is over its capacity by the most bytes.

    Attributes
    ----------
    rank : int
        whose allocation reached the peak; the representative of its class
    stage : int or None
        virtual pipeline stage of the op, None where the program has none
    op : str or None
        name of the op that allocated; None when the resident bytes alone are the peak
    tier : str
        ``gpu``; ``host`` or ``nvme``, which the ranks of a node share
    category : str
        what took most of it
    needed_bytes, capacity_bytes, over_bytes : int
        [B]
    """

    rank: int
    stage: int | None
    op: str | None
    tier: str
    category: str
    needed_bytes: int
    capacity_bytes: int
    over_bytes: int


def out_of_memory(record: Record, topology: Topology) -> OutOfMemory | None:
    """What does not fit, None when all does.

    Ranks on one GPU, of several jobs, add up at each instant; so do the ranks of a node in its host memory and drives.
    A tier without a capacity in ``topology.tier_bytes`` is not judged.
    """
    worst: OutOfMemory | None = None
    for lanes, peak, tier, capacity in _stores(record, topology):
        if peak.nbytes > capacity and (worst is None or peak.nbytes - capacity > worst.over_bytes):
            worst = _describe(lanes[peak.lane], peak, tier, capacity)
    return worst


def _stores(record: Record, topology: Topology) -> Iterator[tuple[list[LaneRecord], Peak, str, int]]:
    """Every different way in which lanes share a store: the lanes, their peak, the tier, its capacity [B]."""
    device, lane = _placement(record)
    for lanes, place in _shared(record, device, lane, topology.gpu_of[device]):
        peaks = peak_together(lanes)
        if "gpu" in peaks:
            yield lanes, peaks["gpu"], "gpu", topology.gpus[topology.gpu_of[place]].memory_bytes

    tiers = {key.split("/")[0] for r in record.lanes for key in (*r.arrays.memory_keys, *r.arrays.resident)}
    if tiers & {*_HOST_TIERS, "nvme"}:
        for lanes, _ in _shared(record, topology.node_of[device], lane, np.zeros_like(lane)):
            for tier, peak in peak_together(lanes, lambda t: "host" if t in _HOST_TIERS else t).items():
                if tier in ("host", "nvme") and tier in topology.tier_bytes:
                    yield lanes, peak, tier, topology.tier_bytes[tier]


def _placement(record: Record) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Device and lane of every rank of every job."""
    devices = [np.arange(j.num_ranks) if j.devices is None else j.devices for j in record.jobs]
    return np.concatenate(devices), np.concatenate(record.lane_of)


def _shared(
    record: Record, place: NDArray[np.int64], lane: NDArray[np.int64], kind: NDArray[np.int64]
) -> Iterator[tuple[list[LaneRecord], int]]:
    """The different sets of lanes found at one place, each with one such place; another kind makes another set."""
    order = np.lexsort((lane, place))
    place, lane, kind = place[order], lane[order], kind[order]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    count = np.diff(first, append=len(place))
    code = kind[first]
    for column in range(int(count.max(initial=0))):
        here = count > column
        member = np.where(here, lane[np.minimum(first + column, len(lane) - 1)] + 1, 0)
        _, code = np.unique(code * (len(record.lanes) + 1) + member, return_inverse=True)
    _, examples = np.unique(code, return_index=True)
    for k in examples:
        yield [record.lanes[i] for i in lane[first[k] : first[k] + count[k]]], int(place[first[k]])


def _describe(lane: LaneRecord, peak: Peak, tier: str, capacity: int) -> OutOfMemory:
    arrays = lane.arrays
    op = peak.op % len(arrays) if peak.op >= 0 else -1
    stage = int(arrays.stage[op]) if op >= 0 else -1
    if stage < 0:
        stage = int(arrays.stage[arrays.stage >= 0].min(initial=np.iinfo(np.int32).max))
    return OutOfMemory(
        rank=lane.rank,
        stage=stage if stage < np.iinfo(np.int32).max else None,
        op=arrays.ops[arrays.op[op]].name if op >= 0 else None,
        tier=tier,
        category=max(peak.by_category, key=peak.by_category.__getitem__),
        needed_bytes=peak.nbytes,
        capacity_bytes=capacity,
        over_bytes=peak.nbytes - capacity,
    )
