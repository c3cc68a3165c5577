"""How much each shared resource was used: links, memories, drives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from clustersim.topology.topology import Topology
from clustersim.trace.record import Rates, Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SATURATED", "links"]

SATURATED = 0.999
"""Part of its capacity from which on a resource counts as saturated; ops end on whole nanoseconds, so that the rates of
short ones are a little below what was granted."""

_MOST_OPS = 3

_COLUMNS = {
    "name": "str",
    "kind": "str",
    "multiplicity": "int64",
    "stands_for": "str",
    "capacity": "float64",
    "nbytes": "Int64",
    "mean_utilisation": "float64",
    "peak_utilisation": "float64",
    "busy_fraction": "float64",
    "saturated_fraction": "float64",
    "num_bound": "Int64",
    "bound_s": "float64",
    "bound_ops": "str",
}


class _Run(Protocol):
    """What is read of a result."""

    @property
    def usage(self) -> Sequence[Rates]: ...
    @property
    def record(self) -> Record: ...
    @property
    def topology(self) -> Topology: ...


def links(usage: Iterable[Rates] | _Run, until_ns: int | None = None) -> pd.DataFrame:
    """Utilisation of each resource from the launch to ``until_ns``.

    In a folded run a row stands for all resources that are used alike, ``multiplicity`` of them; the names in
    ``stands_for`` are those that ``clustersim show topology`` lists.

    Parameters
    ----------
    usage : Result, or iterable of Rates
        a run; with rates alone, :attr:`clustersim.trace.result.Result.usage`, what the ops were bound by is not told
    until_ns : int, optional
        end of the time looked at [ns]; the last instant of any resource when None

    Returns
    -------
    DataFrame
        a row for each resource, the most used first: ``name``, ``kind``, ``multiplicity``, ``stands_for``,
        ``capacity`` [B/s], ``nbytes`` (moved over one such resource [B]; <NA> for drives and cores, which give time),
        ``mean_utilisation`` and ``peak_utilisation`` (fractions of the capacity), ``busy_fraction`` and
        ``saturated_fraction`` (of the time: with at least one user; with 99.9 % of the capacity in use), and of all
        ops of the run whose time one of these resources set: ``num_bound`` (over all ranks), ``bound_s`` (mean over
        ranks of what they took [s]) and ``bound_ops`` (names of those that took most)
    """
    import pandas as pd

    resources = list(usage) if isinstance(usage, Iterable) else usage.usage
    bound = None if isinstance(usage, Iterable) else _bound(usage)
    last = max((int(r.time_ns[-1]) for r in resources if len(r.time_ns)), default=0)
    until = last if until_ns is None else until_ns
    rows = []
    for r in resources:
        lasts = np.diff(np.minimum(r.time_ns, until), append=until).astype(np.float64)
        moved = float(r.used @ lasts) / 1e9
        seen = r.time_ns < until
        of = None if bound is None else bound.get(r.name, _Bound())
        rows.append(
            {
                "name": r.name,
                "kind": r.kind,
                "multiplicity": r.multiplicity,
                "stands_for": r.stands_for or r.name,
                "capacity": r.capacity,
                "nbytes": None if r.kind in ("drive", "cores") else round(moved),
                "mean_utilisation": moved / (r.capacity * until / 1e9) if until else 0.0,
                "peak_utilisation": float(r.used[seen].max(initial=0.0)) / r.capacity,
                "busy_fraction": float(lasts[r.users > 0].sum()) / until if until else 0.0,
                "saturated_fraction": float(lasts[r.used >= SATURATED * r.capacity].sum()) / until if until else 0.0,
                "num_bound": None if of is None else of.num_ops,
                "bound_s": None if of is None else of.seconds,
                "bound_ops": "" if of is None else of.text,
            }
        )
    table = pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)
    return table.sort_values(["mean_utilisation", "name"], ascending=[False, True], ignore_index=True)


@dataclass(kw_only=True, slots=True)
class _Bound:
    """Ops whose time one class of resources set: how many, and their time by name, mean over ranks [s]."""

    num_ops: int = 0
    by_name: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return sum(self.by_name.values())

    @property
    def text(self) -> str:
        names = sorted(self.by_name, key=lambda name: (-self.by_name[name], name))
        return ", ".join(names[:_MOST_OPS]) + (", …" if len(names) > _MOST_OPS else "")


def _bound(run: _Run) -> dict[str, _Bound]:
    """By the name of each class of resources; an op names the resource of its own that bound it, not the class's."""
    record, table = run.record, run.topology.resources
    class_of_row = {int(row): rates.name for rates in run.usage for row in rates.rows}
    class_of_code: dict[int, str] = {}
    for code, name in enumerate(record.bounds):
        try:
            class_of_code[code] = class_of_row.get(table.find(name), name)
        except KeyError:
            continue  # tensor, latency …
    num_ranks = sum(job.num_ranks for job in record.jobs)
    found: dict[str, _Bound] = {}
    for lane in record.lanes:
        ended = np.flatnonzero((lane.end_ns >= 0) & np.isin(lane.bound, list(class_of_code)))
        if not len(ended):
            continue
        num_ops = len(lane.arrays.ops)
        pair = lane.bound[ended].astype(np.int64) * num_ops + lane.ops[ended]
        pairs, at, count = np.unique(pair, return_inverse=True, return_counts=True)
        took = np.bincount(at.reshape(-1), weights=(lane.end_ns - lane.start_ns)[ended].astype(np.float64))
        for key, ns, n in zip(pairs.tolist(), took.tolist(), count.tolist(), strict=True):
            code, op = divmod(key, num_ops)
            name = lane.arrays.ops[op].name
            one = found.setdefault(class_of_code[code], _Bound())
            one.num_ops += n * lane.multiplicity
            one.by_name[name] = one.by_name.get(name, 0.0) + ns * lane.multiplicity / num_ranks / 1e9
    return found
