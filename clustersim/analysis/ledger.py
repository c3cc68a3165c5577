"""The ledger of one lane: which op changes the bytes that it holds, when, and by how much.

The bytes of a rank change when an op starts and when it ends, as its program says, on top of what is resident from the
beginning. At one instant, what ends is accounted before what starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.trace.record import LaneRecord

__all__ = ["Changes", "changes"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Changes:
    """Changes of the bytes that one lane holds, in no particular order; n of them.

    Attributes
    ----------
    instant : NDArray[int64], shape (n,)
        [ns]
    starts : NDArray[int64], shape (n,)
        1 where its op starts, 0 where it ends
    op : NDArray[int64], shape (n,)
        flat number
    key : NDArray[int64], shape (n,)
        index into ``keys``
    delta : NDArray[int64], shape (n,)
        [B]
    keys : tuple[str, ...]
        ``"tier/category"``
    resident : Mapping[str, int]
        bytes held from beginning to end, by memory key [B]
    """

    instant: NDArray[np.int64]
    starts: NDArray[np.int64]
    op: NDArray[np.int64]
    key: NDArray[np.int64]
    delta: NDArray[np.int64]
    keys: tuple[str, ...]
    resident: Mapping[str, int]


def changes(lane: LaneRecord) -> Changes:
    """The ledger of a lane; of what has not happened there is nothing in it."""
    arrays = lane.arrays
    table = np.tile(arrays.memory, (lane.rounds, 1))
    op = table[:, 0] + np.repeat(np.arange(lane.rounds), len(arrays.memory)) * len(arrays)
    instant = np.where(table[:, 1] == 0, lane.start_ns[op], lane.end_ns[op])
    happened = instant >= 0
    return Changes(
        instant=instant[happened],
        starts=(table[:, 1] == 0).astype(np.int64)[happened],
        op=op[happened],
        key=table[:, 2][happened],
        delta=table[:, 3][happened],
        keys=tuple(dict.fromkeys((*arrays.memory_keys, *lane.resident))),
        resident=lane.resident,
    )
