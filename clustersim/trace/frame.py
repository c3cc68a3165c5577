"""The trace as a DataFrame, gathered from the arrays of a record without a Python loop over ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clustersim.trace.record import Record
from clustersim.trace.schema import CATEGORIES, COLUMNS
from clustersim.workload.arrays import Arrays
from clustersim.workload.job import Job
from clustersim.workload.op import Collective

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["first_labels", "frame", "frame_of", "run_names"]


def frame(record: Record, lanes: Iterable[int] | None = None) -> pd.DataFrame:
    """One row for each op that ended, lane after lane, round after round.

    Parameters
    ----------
    record : Record
    lanes : Iterable[int], optional
        which lanes; all of them when None

    Returns
    -------
    DataFrame
        columns as in :data:`clustersim.trace.schema.COLUMNS`; the index ``label`` is the op's number in the whole run,
        so that ``cause`` finds its row whichever lanes were asked for. ``attrs`` counts the ops that have no row,
        which an interrupted run leaves behind: ``unfinished`` (started, not ended) and ``not_started``.
    """
    chosen = range(len(record.lanes)) if lanes is None else lanes
    rows = []
    for k in chosen:
        lane = record.lanes[k]
        rows.append(_Rows(lane=k, rank=lane.rank, multiplicity=lane.multiplicity, groups=lane.groups))
    return _assemble(record, rows)


def frame_of(record: Record, ranks: Iterable[int], job: int = 0) -> pd.DataFrame:
    """The rows of given ranks of one job, each rank under its own number and its own groups.

    Parameters
    ----------
    record : Record
    ranks : Iterable[int]
    job : int
        index into ``record.jobs``

    Returns
    -------
    DataFrame
        as :func:`frame`, ``multiplicity`` 1. Index labels and ``cause`` are those of the whole run's trace: ranks of
        one class share labels.

    Raises
    ------
    ValueError
        when a rank is not one of the job's
    """
    wanted = [int(rank) for rank in ranks]
    num_ranks = record.jobs[job].num_ranks
    for rank in wanted:
        if not 0 <= rank < num_ranks:
            raise ValueError(f"ranks: {rank} must be one of {record.jobs[job].name}'s, 0 to {num_ranks - 1}")
    rows = []
    for rank in wanted:
        lane = int(record.lane_of[job][rank])
        groups = _groups_of(record.jobs[job], rank, record.lanes[lane].groups)
        rows.append(_Rows(lane=lane, rank=rank, multiplicity=1, groups=groups))
    return _assemble(record, rows)


def first_labels(record: Record) -> NDArray[np.int64]:
    """Index label of each lane's first op, shape (len(record.lanes),)."""
    lengths = [len(lane.start_ns) for lane in record.lanes]
    return np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64) if lengths else np.empty(0, np.int64)


def run_names(record: Record) -> list[str]:
    """Values of the column ``run``, by job: their names, made different; a second ``train`` becomes ``train (2)``."""
    result: list[str] = []
    for job in record.jobs:
        number, name = 1, job.name
        while name in result:
            number += 1
            name = f"{job.name} ({number})"
        result.append(name)
    return result


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rows:
    """A lane's rows as one rank sees them."""

    lane: int
    rank: int
    multiplicity: int
    groups: dict[str, str]


class _Values(dict[str, int]):
    """Distinct values of a categorical column, numbered as they first appear."""

    def code(self, value: str) -> int:
        return self.setdefault(value, len(self))

    def codes(self, values: Iterable[str]) -> NDArray[np.int32]:
        return np.fromiter((self.code(v) for v in values), np.int32)


def _assemble(record: Record, rows: Sequence[_Rows]) -> pd.DataFrame:
    import pandas as pd

    first = first_labels(record)
    lengths = [len(record.lanes[r.lane].start_ns) for r in rows]
    ends = np.cumsum(lengths) if lengths else np.empty(0, np.int64)
    categorical = {c.name: _Values() for c in COLUMNS if c.dtype == "category"}
    categorical["category"].codes(CATEGORIES)
    job_names = run_names(record)
    columns = {
        c.name: np.empty(sum(lengths), np.int32 if c.dtype == "category" else np.dtype(c.dtype)) for c in COLUMNS
    }
    label = np.empty(sum(lengths), np.int64)
    by_program: dict[int, dict[str, NDArray[Any]]] = {}
    wanted = 0
    for row, length, end in zip(rows, lengths, ends, strict=True):
        lane, place = record.lanes[row.lane], slice(int(end) - length, int(end))
        if id(lane.arrays) not in by_program:
            by_program[id(lane.arrays)] = _program_columns(lane.arrays, categorical)
        names = (row.groups[op.slot] if isinstance(op, Collective) else "" for op in lane.arrays.ops)
        group = categorical["group"].codes(names)
        for name, column in (by_program[id(lane.arrays)] | {"group": group[lane.arrays.op]}).items():
            columns[name][place].reshape(lane.rounds, -1)[:] = column
        columns["step"][place] = lane.step
        wanted += lane.num_ops
        columns["run"][place] = categorical["run"].code(job_names[lane.job])
        columns["rank"][place] = row.rank
        columns["multiplicity"][place] = row.multiplicity
        columns["ready_ns"][place] = lane.ready_ns
        columns["start_ns"][place] = lane.start_ns
        columns["end_ns"][place] = lane.end_ns
        np.subtract(lane.start_ns, lane.ready_ns, out=columns["wait_ns"][place])
        columns["cause"][place] = np.where(lane.cause_op < 0, -1, first[lane.cause_lane] + lane.cause_op)
        columns["bound"][place] = lane.bound
        columns["pool"][place] = categorical["pool"].code("")
        if len(lane.pooled):
            pools = categorical["pool"].codes(lane.arrays.pools)
            columns["pool"][place][lane.pooled[:, 0]] = pools[lane.pooled[:, 1]]
        label[place] = np.arange(first[row.lane], first[row.lane] + length)
    categorical["bound"].codes(record.bounds)

    ended = columns["end_ns"] >= 0
    unfinished = int(np.count_nonzero(~ended & (columns["start_ns"] >= 0)))
    not_started = wanted - int(np.count_nonzero(ended)) - unfinished
    if not ended.all():
        columns = {name: column[ended] for name, column in columns.items()}
        label = label[ended]
    typed = {
        name: pd.Categorical.from_codes(
            column.astype(np.int32, copy=False), dtype=pd.CategoricalDtype(list(categorical[name])), validate=False
        )
        if name in categorical
        else column
        for name, column in columns.items()
    }
    table = pd.DataFrame(typed, index=_index(label), copy=False)
    table.attrs.update(unfinished=unfinished, not_started=not_started)
    return table


def _program_columns(arrays: Arrays, categorical: dict[str, _Values]) -> dict[str, NDArray[Any]]:
    """The columns that a program settles, one round of them; categorical ones as codes."""
    of_op: dict[str, NDArray[Any]] = {
        "name": categorical["name"].codes(o.name for o in arrays.ops),
        "kind": categorical["kind"].codes(o.kind for o in arrays.ops),
        "category": categorical["category"].codes(o.category for o in arrays.ops),
        "nbytes": np.fromiter((getattr(o, "nbytes", 0) for o in arrays.ops), np.int64),
        "flops": np.fromiter((getattr(o, "flops", 0) for o in arrays.ops), np.int64),
    }
    return {name: column[arrays.op] for name, column in of_op.items()} | {
        "stream": categorical["stream"].codes(arrays.streams)[arrays.stream],
        "phase": categorical["phase"].codes(arrays.phases)[arrays.phase],
        "op_id": np.arange(len(arrays)),
        "micro_batch": arrays.micro_batch,
        "stage": arrays.stage,
        "layer": arrays.layer,
    }


def _groups_of(job: Job, rank: int, named: dict[str, str]) -> dict[str, str]:
    """Slot -> the rank's own group, named as its representative's ``axis/family/number`` is."""
    families = {family.name: family for family in job.families}
    own = {}
    for slot, name in named.items():
        axis, _, rest = name.partition("/")
        family_name = rest.rpartition("/")[0]
        family = families[family_name]
        positions = [p for p in range(family.members.shape[1]) if family.slot(p) == slot]
        number = np.flatnonzero((family.members[:, positions] == rank).any(axis=1))
        own[slot] = f"{axis}/{family_name}/{int(number[0])}"
    return own


def _index(label: NDArray[np.int64]) -> pd.Index:
    """Labels as an index: a range where they have no gaps, which costs nothing."""
    import pandas as pd

    if len(label) == 0 or bool((np.diff(label) == 1).all()):
        start = int(label[0]) if len(label) else 0
        return pd.RangeIndex(start, start + len(label), name="label")
    return pd.Index(label, name="label")
