"""How much each shared resource was used: links, memories, drives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from clustersim.trace.record import Rates

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["links"]


def links(usage: Iterable[Rates], until_ns: int | None = None) -> pd.DataFrame:
    """Utilisation of each resource from the launch to ``until_ns``.

    Parameters
    ----------
    usage : Iterable[Rates]
    until_ns : int, optional
        end of the time looked at [ns]; the last instant of any resource when None

    Returns
    -------
    DataFrame
        a row for each resource, the most used first: ``name``, ``kind``, ``multiplicity``, ``capacity``, ``nbytes``
        (moved over one such resource [B]; <NA> for a drive, whose capacity is time), ``mean_utilisation`` and
        ``peak_utilisation`` (fractions of the capacity) and ``busy_fraction`` (of the time with at least one user)
    """
    import pandas as pd

    resources = list(usage)
    last = max((int(r.time_ns[-1]) for r in resources if len(r.time_ns)), default=0)
    until = last if until_ns is None else until_ns
    rows = []
    for r in resources:
        lasts = np.diff(np.minimum(r.time_ns, until), append=until).astype(np.float64)
        moved = float(r.used @ lasts) / 1e9
        seen = r.time_ns < until
        rows.append(
            {
                "name": r.name,
                "kind": r.kind,
                "multiplicity": r.multiplicity,
                "capacity": r.capacity,
                "nbytes": None if r.kind == "drive" else round(moved),
                "mean_utilisation": moved / (r.capacity * until / 1e9) if until else 0.0,
                "peak_utilisation": float(r.used[seen].max(initial=0.0)) / r.capacity,
                "busy_fraction": float(lasts[r.users > 0].sum()) / until if until else 0.0,
            }
        )
    table = pd.DataFrame(
        rows,
        columns=[
            "name",
            "kind",
            "multiplicity",
            "capacity",
            "nbytes",
            "mean_utilisation",
            "peak_utilisation",
            "busy_fraction",
        ],
    ).astype({"nbytes": "Int64"})
    return table.sort_values(["mean_utilisation", "name"], ascending=[False, True], ignore_index=True)
