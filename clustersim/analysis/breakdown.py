"""Where the time of each rank goes, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clustersim.analysis.partition import AXES, axes_of, class_names, partition
from clustersim.trace.record import LaneRecord
from clustersim.trace.schema import CATEGORIES
from clustersim.trace.steps import step_edges_of
from clustersim.workload.op import Collective

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["axes_of_lanes", "breakdown", "breakdown_ns", "pools_of_lanes"]


def breakdown(trace: pd.DataFrame) -> pd.DataFrame:
    """Split each step of each rank into compute, exposed communication by axis, exposed copies, host, bubble and wait,
    for other ranks and for each pool that was short.

    The classes and what puts an instant into one are defined in :mod:`clustersim.analysis.partition`.

    Parameters
    ----------
    trace : DataFrame
        with the columns of :data:`clustersim.trace.schema.COLUMNS`. The steps are those of the rows given: in a
        selection of ranks, a step ends when the last of these ranks has ended it.

    Returns
    -------
    DataFrame
        a row for each run, step and rank: ``run``, ``step``, ``rank``, ``multiplicity``, the step's ``duration`` [s]
        and the classes [s]. In whole nanoseconds the classes add up to the duration exactly.
    """
    import pandas as pd

    group_axis = [group.split("/")[0] for group in _values(trace["group"])]
    axes = axes_of(group_axis)
    pools = tuple(sorted({str(pool) for pool in trace["pool"].unique()} - {""}))
    names = class_names(axes, pools)
    axis = _recode(trace["group"], [axes.index(a) if a else 0 for a in group_axis])
    category = _recode(trace["category"], [CATEGORIES.index(c) for c in _values(trace["category"])])
    pool = _recode(trace["pool"], [pools.index(p) if p in pools else -1 for p in _values(trace["pool"])])
    columns = {name: trace[name].to_numpy() for name in ("ready_ns", "start_ns", "end_ns")}
    rank, multiplicity = trace["rank"].to_numpy(), trace["multiplicity"].to_numpy()

    pieces = []
    for run, rows in _by_run(trace):
        steps, edges = step_edges_of(trace.iloc[rows])
        for of_rank in _split(rows, rank[rows]):
            spent = partition(
                **{name: column[of_rank] for name, column in columns.items()},
                category=category[of_rank],
                axis=axis[of_rank],
                edges_ns=edges,
                num_axes=len(axes),
                pool=pool[of_rank],
                num_pools=len(pools),
            )
            piece: dict[str, object] = {"run": run, "step": steps, "rank": rank[of_rank[0]]}
            piece |= {"multiplicity": multiplicity[of_rank[0]], "duration": np.diff(edges) / 1e9}
            piece |= {name: spent[:, k] / 1e9 for k, name in enumerate(names)}
            pieces.append(pd.DataFrame(piece))
    if not pieces:
        return pd.DataFrame({name: [] for name in ("run", "step", "rank", "multiplicity", "duration", *names)})
    return pd.concat(pieces, ignore_index=True).sort_values(["run", "step", "rank"], ignore_index=True)


def breakdown_ns(
    lane: LaneRecord, edges_ns: NDArray[np.int64], axes: Sequence[str] = AXES, pools: Sequence[str] = ()
) -> NDArray[np.int64]:
    """The same for one lane of a record, without a DataFrame.

    Parameters
    ----------
    lane : LaneRecord
    edges_ns : NDArray[int64], shape (num_steps + 1,)
        from :func:`clustersim.trace.steps.step_edges` [ns]
    axes : Sequence[str]
        from :func:`axes_of_lanes`
    pools : Sequence[str]
        from :func:`pools_of_lanes`

    Returns
    -------
    NDArray[int64], shape (num_steps, len(class_names(axes, pools)))
        [ns]
    """
    ops = lane.arrays.ops
    category = np.array([CATEGORIES.index(o.category) for o in ops], np.int64)[lane.ops]
    axis = np.array([axes.index(_axis(lane, o)) if isinstance(o, Collective) else 0 for o in ops], np.int64)[lane.ops]
    pool = np.full(len(category), -1, np.int64)
    pool[lane.pooled[:, 0]] = [pools.index(lane.arrays.pools[k]) for k in lane.pooled[:, 1].tolist()]
    ended = lane.end_ns >= 0
    return partition(
        ready_ns=lane.ready_ns[ended],
        start_ns=lane.start_ns[ended],
        end_ns=lane.end_ns[ended],
        category=category[ended],
        axis=axis[ended],
        edges_ns=edges_ns,
        num_axes=len(axes),
        pool=pool[ended] if pools else None,
        num_pools=len(pools),
    )


def axes_of_lanes(lanes: Sequence[LaneRecord]) -> tuple[str, ...]:
    """The axes that the lanes communicate on, :data:`~clustersim.analysis.partition.AXES` first."""
    return axes_of([name.split("/")[0] for lane in lanes for name in lane.groups.values()])


def pools_of_lanes(lanes: Sequence[LaneRecord]) -> tuple[str, ...]:
    """The pools that kept an op of the lanes waiting, by name."""
    return tuple(sorted({lane.arrays.pools[k] for lane in lanes for k in np.unique(lane.pooled[:, 1]).tolist()}))


def _axis(lane: LaneRecord, op: Collective) -> str:
    return lane.groups[op.slot].split("/")[0]


def _recode(column: pd.Series, of_category: Sequence[int]) -> NDArray[np.int64]:
    """Whole numbers in place of a categorical column's values."""
    return np.array(of_category, np.int64)[column.astype("category").cat.codes.to_numpy()]


def _values(column: pd.Series) -> list[str]:
    return [str(value) for value in column.astype("category").cat.categories]


def _by_run(trace: pd.DataFrame) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Each run's name and the positions of its rows."""
    names = _values(trace["run"])
    codes = _recode(trace["run"], range(len(names)))
    for code in np.unique(codes):
        yield names[code], np.flatnonzero(codes == code)


def _split(rows: NDArray[np.int64], key: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Positions by key."""
    order = np.argsort(key, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(key[order])) + 1)
