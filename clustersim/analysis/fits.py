"""Whether a job fits: the bytes that ranks hold against what their GPUs, hosts, drives and file systems have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clustersim.analysis.stores import StorePeak, store_peaks
from clustersim.topology.topology import Topology
from clustersim.trace.record import Record

__all__ = ["OutOfMemory", "out_of_memory", "worst_lack"]


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
        ``gpu``; ``host`` or ``nvme``, which the ranks of a node fill together; ``file_system``, which all fill
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

    Parameters
    ----------
    record : Record
        of the run
    topology : Topology
        whose capacities count; a store without one in ``tier_bytes`` is not judged
    """
    return worst_lack(store_peaks(record, topology))


def worst_lack(peaks: Iterable[StorePeak]) -> OutOfMemory | None:
    """Of several stores the one that lacks most, None when all have room."""
    worst = max(peaks, key=lambda one: one.over_bytes, default=None)
    if worst is None or worst.capacity_bytes is None or worst.over_bytes <= 0:
        return None
    return OutOfMemory(
        rank=worst.rank,
        stage=worst.stage,
        op=worst.op,
        tier=worst.store,
        category=worst.category,
        needed_bytes=worst.nbytes,
        capacity_bytes=worst.capacity_bytes,
        over_bytes=worst.over_bytes,
    )
