"""Bytes held over time, by tier and category: the ledger of a run.

The bytes of a rank change when an op starts and when it ends, as its program says, on top of what is resident from the
beginning. At one instant, what ends is accounted before what starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from clustersim.trace.frame import run_names
from clustersim.trace.record import LaneRecord, Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HasRecord", "Peak", "memory", "peak", "peak_together"]


class HasRecord(Protocol):
    """A result: anything that keeps the record of its run."""

    @property
    def record(self) -> Record:
        """What the engine left behind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """The most that was held in one tier.

    Attributes
    ----------
    nbytes : int
        [B]
    lane, op : int
        position in the lanes looked at and flat op number of the allocation that reached it; op is -1 when the resident
        bytes are the peak
    time_ns : int
        when it was reached; 0 when the resident bytes are the peak [ns]
    by_category : dict[str, int]
        what was held at that instant [B]
    """

    nbytes: int
    lane: int
    op: int
    time_ns: int
    by_category: dict[str, int]


def peak(lane: LaneRecord) -> dict[str, Peak]:
    """Peak of one lane in each tier that its program names."""
    return peak_together([lane])


def peak_together(lanes: Sequence[LaneRecord], store: Callable[[str], str] = str) -> dict[str, Peak]:
    """Peak of several lanes that share their tiers: the ranks of a node, or two jobs on one GPU.

    Parameters
    ----------
    lanes : Sequence[LaneRecord]
        a lane once for each rank that it stands for here
    store : callable
        tier -> what is filled up together; each tier by itself by default

    Returns
    -------
    dict[str, Peak]
        by store
    """
    changes = [_changes(lane) for lane in lanes]
    keys = sorted({key for c in changes for key in c.keys})
    if not keys:
        return {}
    number = {key: k for k, key in enumerate(keys)}
    resident = np.zeros(len(keys), np.int64)
    for c in changes:
        for key, nbytes in c.resident.items():
            resident[number[key]] += nbytes
    lane_of = np.repeat(np.arange(len(lanes)), [len(c.instant) for c in changes])
    instant, starts, op, delta = (
        np.concatenate([getattr(c, name) for c in changes]) for name in ("instant", "starts", "op", "delta")
    )
    key_of = np.concatenate([np.array([number[k] for k in c.keys], np.int64)[c.key] for c in changes])
    order = np.lexsort((starts, instant))
    instant, starts, op, delta, key_of, lane_of = (a[order] for a in (instant, starts, op, delta, key_of, lane_of))

    store_of = [store(key.split("/")[0]) for key in keys]
    result = {}
    for name in dict.fromkeys(store_of):
        members = np.array([s == name for s in store_of])
        base = int(resident[members].sum())
        here = np.flatnonzero(members[key_of])
        level = base + np.cumsum(delta[here])
        turn = 2 * instant[here] + starts[here]  # changes of one turn happen together
        last = np.flatnonzero(np.diff(turn, append=-1))
        held = resident.copy()
        lane_at, op_at, time_ns, most = 0, -1, 0, base
        if len(last) and int(level[last].max()) > base:
            until = int(last[np.argmax(level[last])])
            together = here[turn == turn[until]]
            allocation = together[np.argmax(delta[together])]
            lane_at, op_at, most = int(lane_of[allocation]), int(op[allocation]), int(level[until])
            time_ns = int(instant[allocation])
            np.add.at(held, key_of[here[: until + 1]], delta[here[: until + 1]])
        categories: dict[str, int] = {}
        for key, nbytes, is_member in zip(keys, held.tolist(), members, strict=True):
            if is_member:
                category = key.partition("/")[2]
                categories[category] = categories.get(category, 0) + nbytes
        result[name] = Peak(nbytes=most, lane=lane_at, op=op_at, time_ns=time_ns, by_category=categories)
    return result


def memory(run: HasRecord | Record) -> pd.DataFrame:
    """Bytes held over time.

    Parameters
    ----------
    run : Result or Record

    Returns
    -------
    DataFrame
        a step function for each job, representative rank, tier and category: ``nbytes`` holds from ``time_ns`` on.
        Columns ``run``, ``rank``, ``multiplicity``, ``tier``, ``category``, ``time_ns``, ``nbytes``.
    """
    import pandas as pd

    record = run if isinstance(run, Record) else run.record
    names = run_names(record)
    pieces = []
    for lane in record.lanes:
        c = _changes(lane)
        order = np.lexsort((c.starts, c.instant))
        for k, key in enumerate(c.keys):
            mine = order[c.key[order] == k]
            instant = np.concatenate(([0], c.instant[mine]))
            level = c.resident.get(key, 0) + np.concatenate(([0], np.cumsum(c.delta[mine])))
            last = np.flatnonzero(np.diff(instant, append=-1))
            tier, _, category = key.partition("/")
            labels = {"run": names[lane.job], "rank": lane.rank, "multiplicity": lane.multiplicity}
            labels |= {"tier": tier, "category": category}
            pieces.append(pd.DataFrame(labels | {"time_ns": instant[last], "nbytes": level[last]}))
    columns = ["run", "rank", "multiplicity", "tier", "category", "time_ns", "nbytes"]
    if not pieces:
        return pd.DataFrame({name: [] for name in columns})
    table = pd.concat(pieces, ignore_index=True)[columns]
    return table.astype({"run": "category", "tier": "category", "category": "category"})


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Changes:
    """Changes of the bytes that one lane holds, in no particular order."""

    instant: NDArray[np.int64]
    starts: NDArray[np.int64]
    op: NDArray[np.int64]
    key: NDArray[np.int64]
    delta: NDArray[np.int64]
    keys: tuple[str, ...]
    resident: dict[str, int]


def _changes(lane: LaneRecord) -> _Changes:
    arrays = lane.arrays
    keys = tuple(dict.fromkeys((*arrays.memory_keys, *arrays.resident)))
    table = np.tile(arrays.memory, (lane.rounds, 1))
    op = table[:, 0] + np.repeat(np.arange(lane.rounds), len(arrays.memory)) * len(arrays)
    instant = np.where(table[:, 1] == 0, lane.start_ns[op], lane.end_ns[op])
    happened = instant >= 0
    return _Changes(
        instant=instant[happened],
        starts=(table[:, 1] == 0).astype(np.int64)[happened],
        op=op[happened],
        key=table[:, 2][happened],
        delta=table[:, 3][happened],
        keys=keys,
        resident=dict(arrays.resident),
    )
