"""What set the time of ops: tensor cores, memory, latency, or which link, memory or drive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clustersim.trace.steps import step_edges_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["bounds"]

_KEYS = ["run", "category", "bound"]


def bounds(trace: pd.DataFrame) -> pd.DataFrame:
    """Time of ops by what bound them. Two runs side by side say where one of them lost time, and how much.

    An op that a shared resource held below its own speed is bound by that resource, the last one that did; one that had
    its way, by what limits it alone.

    Parameters
    ----------
    trace : DataFrame
        with the columns of :data:`clustersim.trace.schema.COLUMNS`

    Returns
    -------
    DataFrame
        a row for each ``run``, ``category`` and ``bound``, runs in their order, the most time first: ``num_ops`` over
        all ranks, ``seconds``, the mean over ranks of the time that these ops took [s], and ``fraction``, of the run's
        duration. Ops of several streams run at the same time, so fractions need not sum to 1.
    """
    took = trace[_KEYS].copy()
    took["num_ops"] = trace["multiplicity"].astype(np.int64)
    took["seconds"] = (trace["end_ns"] - trace["start_ns"]) * took["num_ops"] / 1e9
    table = took.groupby(_KEYS, observed=True)[["num_ops", "seconds"]].sum().reset_index()
    table["fraction"] = 0.0
    for run, rows in trace.groupby("run", observed=True):
        num_ranks = int(rows.drop_duplicates("rank")["multiplicity"].sum())
        edges_ns = step_edges_of(rows)[1]
        mine = table["run"] == run
        table.loc[mine, "seconds"] /= num_ranks
        table.loc[mine, "fraction"] = table.loc[mine, "seconds"] / (int(edges_ns[-1] - edges_ns[0]) / 1e9)
    return table.sort_values(["run", "seconds"], ascending=[True, False], ignore_index=True)
