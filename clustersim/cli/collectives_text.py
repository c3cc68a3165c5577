"""The collectives of a run as text, readable at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustersim.analysis.report import seconds_text, table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["collectives_text", "nbytes_text"]

_MOST = 12


def collectives_text(collectives: pd.DataFrame) -> str:
    """The collectives that take most of a step, a line each.

    Parameters
    ----------
    collectives : DataFrame
        :attr:`clustersim.trace.result.Result.collectives`
    """
    if collectives.empty:
        return "collectives: none"
    shown = collectives.head(_MOST)
    rows = [("group", "kind", "bytes", "ranks", "sent as", "SMs", "alone", "a step")]
    rows += [
        (
            row["family"],
            row["kind"],
            nbytes_text(row["nbytes"]),
            f"{row['num_members']}/{row['num_nodes']}",
            f"{row['algorithm']}/{row['protocol']}" if row["protocol"] else row["algorithm"],
            str(row["num_channels"]),
            seconds_text(row["alone_s"]),
            f"x {row['num_per_step']:,}",
        )
        for row in shown.to_dict("records")
    ]
    lines = ["collectives (ranks a group / nodes it spans; time without other traffic)"]
    lines.append(table(rows, right=(2, 3, 5, 6, 7)))
    if len(collectives) > len(shown):
        lines.append(f"  and {len(collectives) - len(shown)} more: collectives.parquet in the run folder has all")
    return "\n".join(lines)


def nbytes_text(nbytes: int) -> str:
    """A payload as nccl-tests writes sizes: ``64M`` is 64 · 2^20."""
    for unit, each in (("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if nbytes >= each:
            return f"{nbytes / each:.4g}{unit}"
    return f"{nbytes}"
