"""Which collectives a run had, how each was sent and why, built when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clustersim.faults import BadInput, Fault

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLLECTIVE_COLUMNS", "CollectiveRecord", "collectives_frame", "read"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveRecord:
    """One kind and size of collective of the groups of one family that run it alike.

    Parameters
    ----------
    job : int
        index into ``Record.jobs``
    axis, family : str
        of the groups, as in ``axis/family/number``
    kind : str
        ``all_reduce``, ``send_recv`` …
    nbytes : int
        payload of one rank [B]
    num_groups, num_members, num_nodes : int
        groups that the record stands for, members of each, nodes that each spans
    algorithm, protocol : str
        as chosen; the protocol is empty where the topology's library has none for the algorithm
    num_channels : int
        SMs that it takes on each member while it runs
    alone_ns, latency_ns : int
        of the slowest of the groups: its time with no other traffic, and the part that no bandwidth would shorten [ns]
    busiest_link : str
        resource that the slowest group loads most for its capacity; empty where it loads none
    busiest_link_nbytes : int
        bytes of one such collective on it [B]
    num_per_step : int
        times in a step that the group runs it that has it most often; a mean over the steps of a program, rounded up
    slowest_group : str
        its name
    reason : str
        why it ran so
    """

    job: int
    axis: str
    family: str
    kind: str
    nbytes: int
    num_groups: int
    num_members: int
    num_nodes: int
    algorithm: str
    protocol: str
    num_channels: int
    alone_ns: int
    latency_ns: int
    busiest_link: str
    busiest_link_nbytes: int
    num_per_step: int
    slowest_group: str
    reason: str


COLLECTIVE_COLUMNS = (
    "run",
    "axis",
    "family",
    "kind",
    "nbytes",
    "num_groups",
    "num_members",
    "num_nodes",
    "algorithm",
    "protocol",
    "num_channels",
    "alone_s",
    "latency_s",
    "busiest_link",
    "busiest_link_nbytes",
    "num_per_step",
    "slowest_group",
    "reason",
)
"""Columns of :func:`collectives_frame`."""


def collectives_frame(records: Iterable[CollectiveRecord], run_names: Sequence[str]) -> pd.DataFrame:
    """A row for each record, those that take the most time a step first.

    Parameters
    ----------
    records : Iterable[CollectiveRecord]
    run_names : Sequence[str]
        by job, as in the trace's column ``run``

    Returns
    -------
    DataFrame
        columns as in :data:`COLLECTIVE_COLUMNS`, each the record's field of that name; ``run`` is the job's name,
        ``alone_s`` and ``latency_s`` are in seconds
    """
    import pandas as pd

    rows = sorted(records, key=lambda r: (r.job, -r.alone_ns * r.num_per_step, r.axis, r.family, r.kind, r.nbytes))
    columns = {
        name: [getattr(row, name) for row in rows]
        for name in COLLECTIVE_COLUMNS
        if name not in ("run", "alone_s", "latency_s")
    }
    columns |= {
        "run": [run_names[row.job] for row in rows],
        "alone_s": [row.alone_ns / 1e9 for row in rows],
        "latency_s": [row.latency_ns / 1e9 for row in rows],
    }
    types = {
        name: "float64" if name.endswith("_s") else "int64" if name.startswith("num_") or "nbytes" in name else "str"
        for name in COLLECTIVE_COLUMNS
    }
    return pd.DataFrame({name: pd.Series(columns[name], dtype=types[name]) for name in COLLECTIVE_COLUMNS})


def read(path: Path) -> pd.DataFrame:
    """Read the table from the ``collectives.parquet`` of a run folder.

    Raises
    ------
    BadInput
        when there is no such file, it is no Parquet, or lacks a column
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        rule = "must be in a run folder"
        raise BadInput([Fault(file=str(path.parent), key=path.name, value=None, rule=rule)]) from None
    except pa.ArrowInvalid as error:
        raise BadInput(
            [Fault(file=str(path), key="collectives", value=str(error), rule="must be a Parquet file")]
        ) from None
    missing = [name for name in COLLECTIVE_COLUMNS if name not in table.column_names]
    if missing:
        raise BadInput([Fault(file=str(path), key="columns", value=missing, rule="must not be missing")])
    frame: pd.DataFrame = table.to_pandas()
    return frame
