"""Versions of a job's state: when each was begun, copied and committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustersim.workload.checkpoint.policy import PHASE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["checkpoints"]


def checkpoints(trace: pd.DataFrame) -> pd.DataFrame:
    """One row a save.

    Parameters
    ----------
    trace : DataFrame
        with the columns of :data:`clustersim.trace.schema.COLUMNS`, of whole rounds of steps

    Returns
    -------
    DataFrame
        ``run``; ``step``, whose state it is; ``begun``, when the update of the last rank was through; ``copied``, when
        the state of no rank is needed any more; ``committed``, when the last rank has written its last file, or copied
        its part where nothing is written [s]; ``nbytes``, what all ranks took [B]
    """
    import pandas as pd

    columns = ("run", "step", "begun", "copied", "committed", "nbytes")
    rows = []
    for (run, step), save in trace[trace["phase"] == PHASE].groupby(["run", "step"], observed=True):
        taken = save["name"].astype(str)
        copies, writes = save[taken.str.startswith("save ")], save[taken == "write checkpoint"]
        last = copies if len(copies) else save
        passes = writes if len(writes) else copies
        rows.append(
            (
                run,
                step,
                save.groupby("rank")["ready_ns"].min().max() / 1e9,
                last["end_ns"].max() / 1e9,
                save["end_ns"].max() / 1e9,
                int((passes["nbytes"] * passes["multiplicity"]).sum()),
            )
        )
    return pd.DataFrame(rows, columns=columns)
