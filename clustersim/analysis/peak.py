"""The most that is held at one instant, by one rank or by several that share a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.analysis.ledger import Changes, changes
from clustersim.trace.record import LaneRecord

__all__ = ["Peak", "peak", "peak_together"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """The most that was held in one store.

    Attributes
    ----------
    nbytes : int
        [B]
    lane, op : int
        position in the lanes looked at and flat op number of the allocation that reached it; op is -1 when the resident
        bytes are the peak, and the lane then one that holds most of them
    time_ns : int
        when it was reached; 0 when the resident bytes are the peak [ns]
    held : dict[str, int]
        what was held at that instant, by memory key [B]
    """

    nbytes: int
    lane: int
    op: int
    time_ns: int
    held: dict[str, int]

    @property
    def by_category(self) -> dict[str, int]:
        """What was held at that instant, tiers together [B]."""
        return self._by(2)

    @property
    def by_tier(self) -> dict[str, int]:
        """What was held at that instant, categories together [B]."""
        return self._by(0)

    def _by(self, part: int) -> dict[str, int]:
        total: dict[str, int] = {}
        for key, nbytes in self.held.items():
            name = key.partition("/")[part]
            total[name] = total.get(name, 0) + nbytes
        return total


def peak(lane: LaneRecord) -> dict[str, Peak]:
    """Peak of one lane in each tier that its program names."""
    return peak_together([lane])


def peak_together(
    lanes: Sequence[LaneRecord],
    store: Callable[[str], str] = str,
    *,
    counts: Sequence[int] | None = None,
    beside: Mapping[str, int] | None = None,
) -> dict[str, Peak]:
    """Peak of several lanes that share their tiers: the ranks of a node, or two jobs on one GPU.

    Parameters
    ----------
    lanes : Sequence[LaneRecord]
    store : callable
        tier -> what is filled up together; each tier by itself by default
    counts : Sequence[int], optional
        for how many ranks each lane stands here; 1 each by default
    beside : Mapping[str, int], optional
        bytes held throughout that are no single rank's, by memory key: pools of the node [B]

    Returns
    -------
    dict[str, Peak]
        by store
    """
    times = np.ones(len(lanes), np.int64) if counts is None else np.asarray(counts, np.int64)
    ledgers, beside = [changes(lane) for lane in lanes], beside or {}
    keys = sorted({key for ledger in ledgers for key in ledger.keys} | set(beside))
    if not keys:
        return {}
    number = {key: k for k, key in enumerate(keys)}
    resident = np.zeros((len(lanes) + 1, len(keys)), np.int64)  # by lane, and at last what is beside them
    for k, ledger in enumerate(ledgers):
        for key, nbytes in ledger.resident.items():
            resident[k, number[key]] = nbytes * times[k]
    for key, nbytes in beside.items():
        resident[-1, number[key]] = nbytes
    lane_of = np.repeat(np.arange(len(lanes)), [len(ledger.instant) for ledger in ledgers])
    instant, starts, op = (_joined(ledgers, name) for name in ("instant", "starts", "op"))
    delta = _joined(ledgers, "delta") * times[lane_of]
    in_lanes = [np.array([number[key] for key in ledger.keys], np.int64)[ledger.key] for ledger in ledgers]
    key_of = np.concatenate([np.empty(0, np.int64), *in_lanes])
    order = np.lexsort((starts, instant))
    instant, starts, op, delta, key_of, lane_of = (a[order] for a in (instant, starts, op, delta, key_of, lane_of))

    store_of = [store(key.partition("/")[0]) for key in keys]
    result = {}
    for name in dict.fromkeys(store_of):
        members = np.array([s == name for s in store_of])
        held = resident.sum(axis=0)
        most = int(held[members].sum())
        here = np.flatnonzero(members[key_of])
        level = most + np.cumsum(delta[here])
        turn = 2 * instant[here] + starts[here]  # changes of one turn happen together
        last = np.flatnonzero(np.diff(turn, append=-1))
        lane_at, op_at, time_ns = int(resident[:-1, members].sum(axis=1).argmax()) if lanes else 0, -1, 0
        if len(last) and int(level[last].max()) > most:
            until = int(last[np.argmax(level[last])])
            together = here[turn == turn[until]]
            allocation = together[np.argmax(delta[together])]
            lane_at, op_at, most = int(lane_of[allocation]), int(op[allocation]), int(level[until])
            time_ns = int(instant[allocation])
            np.add.at(held, key_of[here[: until + 1]], delta[here[: until + 1]])
        by_key = {key: int(held[k]) for k, key in enumerate(keys) if members[k]}
        result[name] = Peak(nbytes=most, lane=lane_at, op=op_at, time_ns=time_ns, held=by_key)
    return result


def _joined(ledgers: Sequence[Changes], name: str) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *(getattr(ledger, name) for ledger in ledgers)])
