"""A step as those who offload read it: forward, backward, swap-in, update, swap-out.

The passes last until the last op of forward and backward that is no access of a drive; what writes gradients may go on
behind them. Up to there an instant belongs to the pass whose kernel ends next. Behind it an instant is in the first of
these that holds:

1. an op works that is no access of a drive: ``update`` (the CPU or GPU updates, casts, copies weights)
2. a read of a drive works, or waits for a buffer, a lock or its turn: ``swap_in``
3. a write does: ``swap_out``
4. nothing does: ``wait``, for other ranks

The six add up to the step. Of the time that accesses of each way take or wait, in the update and beside the passes, the
part that is not ``swap_in`` or ``swap_out`` is hidden behind other work: the overlapped share.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clustersim.analysis.partition import strongest
from clustersim.trace.record import LaneRecord
from clustersim.trace.steps import step_edges_of
from clustersim.workload.checkpoint.policy import PHASE as SAVES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PHASES", "overlapped", "phases", "phases_ns"]

PHASES = ("forward", "backward", "swap_in", "update", "swap_out", "wait")
"""Terms of a step, in order; behind them stand ``reads`` and ``writes``: what accesses take, hidden or not."""


def phases(trace: pd.DataFrame) -> pd.DataFrame:
    """Split each step of each rank into forward, backward, swap-in, update, swap-out and waiting for others.

    Parameters
    ----------
    trace : DataFrame
        with the columns of :data:`clustersim.trace.schema.COLUMNS`

    Returns
    -------
    DataFrame
        a row for each run, step and rank: ``run``, ``step``, ``rank``, ``multiplicity``, ``duration`` [s], the terms
        [s], which add up to it, and ``swap_in_overlapped`` and ``swap_out_overlapped``, the hidden shares of reads and
        writes (fraction; 0 where there are none)
    """
    import pandas as pd

    pieces = []
    for run, rows in trace.groupby("run", observed=True):
        steps, edges = step_edges_of(rows)
        for rank, mine in rows.groupby("rank"):
            text = {name: mine[name].astype(str).to_numpy(dtype=str) for name in ("phase", "category", "kind")}
            times = {name: mine[name].to_numpy() for name in ("ready_ns", "start_ns", "end_ns")}
            step = np.searchsorted(steps, mine["step"].to_numpy())
            spent = _split(step=step, role=_role(**text), edges_ns=edges, **times)
            piece: dict[str, object] = {"run": run, "step": steps, "rank": rank}
            piece |= {"multiplicity": int(mine["multiplicity"].iloc[0]), "duration": np.diff(edges) / 1e9}
            piece |= {name: spent[:, k] / 1e9 for k, name in enumerate(PHASES)}
            hidden = overlapped(spent)
            piece |= {"swap_in_overlapped": hidden[:, 0], "swap_out_overlapped": hidden[:, 1]}
            pieces.append(pd.DataFrame(piece))
    return pd.concat(pieces, ignore_index=True).sort_values(["run", "step", "rank"], ignore_index=True)


def phases_ns(lane: LaneRecord, edges_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same for one lane of a record, without a DataFrame.

    Parameters
    ----------
    lane : LaneRecord
    edges_ns : NDArray[int64], shape (num_steps + 1,)
        from :func:`clustersim.trace.steps.step_edges` [ns]

    Returns
    -------
    NDArray[int64], shape (num_steps, len(PHASES) + 2)
        the terms, then what reads and what writes take, hidden or not [ns]
    """
    arrays, ended = lane.arrays, lane.end_ns >= 0
    phase = np.array(arrays.phases, dtype=str)[arrays.phase]
    category = np.array([op.category for op in arrays.ops], dtype=str)[arrays.op]
    kind = np.array([getattr(op, "kind", "") for op in arrays.ops], dtype=str)[arrays.op]
    role = np.tile(_role(phase=phase, category=category, kind=kind), lane.rounds)
    times = {"ready_ns": lane.ready_ns[ended], "start_ns": lane.start_ns[ended], "end_ns": lane.end_ns[ended]}
    return _split(step=lane.step[ended], role=role[ended], edges_ns=edges_ns, **times)


def overlapped(spent: NDArray[np.int64]) -> NDArray[np.float64]:
    """Hidden shares of reads and of writes, 0 where there are none, shape (num_steps, 2).

    Parameters
    ----------
    spent : NDArray[int64], shape (num_steps, len(PHASES) + 2)
        from :func:`phases_ns`
    """
    exposed, total = spent[:, [PHASES.index("swap_in"), PHASES.index("swap_out")]], spent[:, len(PHASES) :]
    return np.where(total > 0, 1 - exposed / np.maximum(total, 1), 0.0)


_FORWARD, _BACKWARD, _BESIDE, _UPDATE, _READ, _WRITE, _ISSUES = range(7)
"""What an op is: a kernel of a pass, forward or backward; what else passes wait for; the update; accesses of drives,
but for weights that passes read; calls that issue kernels, and saves of the state."""


def _role(*, phase: NDArray[np.str_], category: NDArray[np.str_], kind: NDArray[np.str_]) -> NDArray[np.int64]:
    forward, backward = np.char.startswith(phase, "forward"), np.char.startswith(phase, "backward")
    storage = category == "storage"
    reads = storage & np.char.endswith(kind, "_read")
    role = np.where(forward | backward, _BESIDE, _UPDATE)
    role[(category == "compute") & forward], role[(category == "compute") & backward] = _FORWARD, _BACKWARD
    role[storage & ~reads], role[reads & ~(forward | backward)] = _WRITE, _READ
    role[(category == "launch") | (phase == SAVES)] = _ISSUES
    return role


def _split(
    *,
    step: NDArray[np.integer],
    role: NDArray[np.int64],
    ready_ns: NDArray[np.int64],
    start_ns: NDArray[np.int64],
    end_ns: NDArray[np.int64],
    edges_ns: NDArray[np.int64],
) -> NDArray[np.int64]:
    """See :func:`phases_ns`."""
    spent = np.zeros((len(edges_ns) - 1, len(PHASES) + 2), np.int64)
    level = np.select([role == _READ, role == _WRITE], [1, 2], 0)
    counts = np.flatnonzero(role != _ISSUES)
    waits = counts[(level[counts] > 0) & (start_ns[counts] > ready_ns[counts])]
    begins = np.concatenate((start_ns[counts], ready_ns[waits]))
    stops = np.concatenate((end_ns[counts], start_ns[waits]))
    levels = np.concatenate((level[counts], level[waits]))
    for number, (first, last) in enumerate(pairwise(edges_ns.tolist())):
        passes = (step == number) & (role <= _BESIDE)
        through = int(np.clip(end_ns[passes].max(initial=first), first, last))
        kernels = np.flatnonzero((step == number) & (role <= _BACKWARD))
        kernels = kernels[np.argsort(end_ns[kernels], kind="stable")]
        ends = np.clip(end_ns[kernels], first, through)
        lengths = np.diff(ends, prepend=first)
        spent[number, 0] = lengths[role[kernels] == _FORWARD].sum()
        spent[number, 1] = through - first - spent[number, 0]
        window = np.array([through, last], np.int64)
        update, read, write, nothing = strongest(begins, stops, levels, window, 3)[0]
        spent[number, 2:6] = read, update, write, nothing
        for k in (1, 2):
            mine = levels == k
            whole = np.array([first, last], np.int64)
            spent[number, 5 + k] = strongest(begins[mine], stops[mine], levels[mine] * 0, whole, 1)[0, 0]
    return spent
