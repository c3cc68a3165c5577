"""What limits the host's work: its cores, the memory of its sockets, the links between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.trace.record import LaneRecord

__all__ = ["host_bounds_s"]


def host_bounds_s(
    lanes: Sequence[LaneRecord], bounds: Sequence[str], steps: NDArray[np.int64]
) -> dict[str, float] | None:
    """Time of the host's work, such as updates and casts, by what set it.

    Parameters
    ----------
    lanes : Sequence[LaneRecord]
        of one job
    bounds : Sequence[str]
        of the record: what each of its codes stands for
    steps : NDArray[int64]
        that count

    Returns
    -------
    dict[str, float] or None
        ``cores``, ``dram`` and so on, the longest first: mean over ranks and steps [s]. Work of one rank that goes on
        at the same time counts each by itself. None without a step
    """
    if not len(steps):
        return None
    kinds = [name.rpartition("/")[2] for name in bounds]
    spent: dict[str, float] = {}
    for lane in lanes:
        host = np.array([op.category == "host" for op in lane.arrays.ops], dtype=bool)
        mine = (lane.end_ns >= 0) & np.isin(lane.step, steps) & host[lane.ops]
        took = (lane.end_ns - lane.start_ns)[mine]
        for code, ns in enumerate(np.bincount(lane.bound[mine], weights=took, minlength=len(kinds)).tolist()):
            if ns:
                spent[kinds[code]] = spent.get(kinds[code], 0.0) + ns * lane.multiplicity
    over = 1e9 * len(steps) * sum(lane.multiplicity for lane in lanes)
    return {kind: spent[kind] / over for kind in sorted(spent, key=lambda kind: -spent[kind])}
