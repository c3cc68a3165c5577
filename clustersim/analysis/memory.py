"""Bytes held over time, by tier and category: the ledger of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from clustersim.analysis.ledger import changes
from clustersim.trace.frame import run_names
from clustersim.trace.record import Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HasRecord", "memory"]


class HasRecord(Protocol):
    """A result: anything that keeps the record of its run."""

    @property
    def record(self) -> Record:
        """What the engine left behind."""


def memory(run: HasRecord | Record, by: Literal["category", "tier", "all"] = "category") -> pd.DataFrame:
    """Bytes that one rank of each class holds over time; pools of a node are no rank's.

    Parameters
    ----------
    run : Result or Record
    by : {"category", "tier", "all"}
        a step function for each category of each tier, for each tier, or one for all tiers together

    Returns
    -------
    DataFrame
        a step function for each job and representative rank: ``nbytes`` holds from ``time_ns`` on. Columns ``run``,
        ``rank``, ``multiplicity``, ``tier``, ``category``, ``time_ns``, ``nbytes``; what is summed over is called
        ``all``.

    Raises
    ------
    ValueError
        when ``by`` is none of the three
    """
    import pandas as pd

    if by not in ("category", "tier", "all"):
        raise ValueError(f"by: {by!r} must be category, tier or all")
    record = run if isinstance(run, Record) else run.record
    names = run_names(record)
    pieces = []
    for lane in record.lanes:
        ledger = changes(lane)
        order = np.lexsort((ledger.starts, ledger.instant))
        parts: dict[tuple[str, str], list[int]] = {}
        for k, key in enumerate(ledger.keys):
            tier, _, category = key.partition("/")
            part = ("all" if by == "all" else tier, category if by == "category" else "all")
            parts.setdefault(part, []).append(k)
        for (tier, category), members in parts.items():
            mine = order[np.isin(ledger.key[order], members)]
            instant = np.concatenate(([0], ledger.instant[mine]))
            base = sum(ledger.resident.get(ledger.keys[k], 0) for k in members)
            level = base + np.concatenate(([0], np.cumsum(ledger.delta[mine])))
            last = np.flatnonzero(np.diff(instant, append=-1))
            labels = {"run": names[lane.job], "rank": lane.rank, "multiplicity": lane.multiplicity}
            labels |= {"tier": tier, "category": category}
            pieces.append(pd.DataFrame(labels | {"time_ns": instant[last], "nbytes": level[last]}))
    columns = ["run", "rank", "multiplicity", "tier", "category", "time_ns", "nbytes"]
    if not pieces:
        return pd.DataFrame({name: [] for name in columns})
    table = pd.concat(pieces, ignore_index=True)[columns]
    return table.astype({"run": "category", "tier": "category", "category": "category"})
