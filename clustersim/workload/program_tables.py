"""What a program is made of while it is built: its ops, what they wait for and what they hold, as growing tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.op import Op
from clustersim.workload.table import Table

__all__ = ["COLUMNS", "Copy", "ProgramTables"]

COLUMNS = ("op", "stream", "phase", "micro_batch", "layer", "stage", "step")
"""Of the rows: numbers of the op, its stream and its phase, and labels."""

_MICRO_BATCH, _STEP = COLUMNS.index("micro_batch"), COLUMNS.index("step")
_FIRST_OF_FOUR = np.array([1, 0, 0, 0])

_Name = TypeVar("_Name", Op, str)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Copy:
    """A fragment in the numbers of the program that it is copied into.

    Parameters
    ----------
    lengths : tuple[int, ...]
        of the fragment when it was looked at
    rows, waits, carries, memory, pool_use : NDArray[int64]
        its tables, ops counted from 0
    """

    lengths: tuple[int, ...]
    rows: NDArray[np.int64]
    waits: NDArray[np.int64]
    carries: NDArray[np.int64]
    memory: NDArray[np.int64]
    pool_use: NDArray[np.int64]


class ProgramTables:
    """Tables that count names by their order.

    Attributes
    ----------
    ops : dict[Op, int]
    streams, phases, keys, pools : dict[str, int]
        name -> number
    rows : Table
        an op a row, see :data:`COLUMNS`
    waits, carries : Table
        (before, after), within a round and to the next one
    memory, pool_use : Table
        (op, 0 at its start or 1 at its end, key or pool, amount)
    """

    __slots__ = ("carries", "keys", "memory", "ops", "phases", "pool_use", "pools", "rows", "streams", "waits")

    def __init__(self) -> None:
        self.ops: dict[Op, int] = {}
        self.streams: dict[str, int] = {}
        self.phases: dict[str, int] = {}
        self.keys: dict[str, int] = {}
        self.pools: dict[str, int] = {}
        self.rows = Table(len(COLUMNS))
        self.waits = Table(2, ordered=False)
        self.carries = Table(2, ordered=False)
        self.memory = Table(4)
        self.pool_use = Table(4)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tables only grow, so these say whether one has changed."""
        return tuple(len(t) for t in (self.rows, self.waits, self.carries, self.memory, self.pool_use))

    @property
    def num_steps(self) -> int:
        """Steps that rows are labelled with."""
        return 1 + int(self.rows.rows()[:, _STEP].max(initial=0))

    def add(
        self,
        row: Iterable[int],
        memory: Iterable[tuple[int, Mapping[str, int] | None]],
        pool_use: Iterable[tuple[int, Mapping[str, int] | None]],
    ) -> None:
        """Add one op with what it holds and takes, each by (0 at its start or 1 at its end, name -> amount)."""
        number = len(self.rows)
        self.rows.add(*row)
        for at, changes in memory:
            for key, nbytes in (changes or {}).items():
                self.memory.add(number, at, self.keys.setdefault(key, len(self.keys)), nbytes)
        for at, amounts in pool_use:
            for pool, amount in (amounts or {}).items():
                self.pool_use.add(number, at, self.pools.setdefault(pool, len(self.pools)), amount)

    def add_like(self, like: NDArray[np.int64], ops: Sequence[Op], which: NDArray[np.int64], stream: str) -> None:
        """Add ``ops[which]`` on a stream, each with the labels of an op that is there."""
        rows = self.rows.rows()[like]
        number, come = np.full(len(ops), -1, dtype=np.int64), np.unique(which, return_index=True)
        for k in come[0][np.argsort(come[1])].tolist():  # numbered as they come, as one by one
            number[k] = self.ops.setdefault(ops[k], len(self.ops))
        rows[:, 0] = number[which]
        rows[:, 1] = self.streams.setdefault(stream, len(self.streams))
        self.rows.extend(rows)

    def copy_of(self, other: ProgramTables) -> Copy:
        """What a copy of ``other`` looks like here, but for its offset."""
        rows, memory, pool_use = (t.rows().copy() for t in (other.rows, other.memory, other.pool_use))
        rows[:, 0] = _numbers(other.ops, self.ops)[rows[:, 0]]
        rows[:, 1] = _numbers(other.streams, self.streams)[rows[:, 1]]
        rows[:, 2] = _numbers(other.phases, self.phases)[rows[:, 2]]
        memory[:, 2] = _numbers(other.keys, self.keys)[memory[:, 2]]
        pool_use[:, 2] = _numbers(other.pools, self.pools)[pool_use[:, 2]]
        return Copy(
            lengths=other.lengths,
            rows=rows,
            waits=other.waits.rows(),
            carries=other.carries.rows(),
            memory=memory,
            pool_use=pool_use,
        )

    def append(self, copied: Copy, step: int, micro_batch: int | Sequence[int] | None) -> None:
        """Append a copy, its first step as ``step``; of several micro-batches, its labels say which is whose."""
        offset, rows = len(self.rows), copied.rows
        if step or micro_batch is not None:
            rows = rows.copy()
            rows[:, _STEP] += step
        if micro_batch is not None:
            own = micro_batch if isinstance(micro_batch, int) else np.array(micro_batch)[rows[:, _MICRO_BATCH]]
            rows[:, _MICRO_BATCH] = own
        self.rows.extend(rows)
        self.waits.extend(copied.waits + offset)
        self.carries.extend(copied.carries + offset)
        self.memory.extend(copied.memory + _FIRST_OF_FOUR * offset)
        self.pool_use.extend(copied.pool_use + _FIRST_OF_FOUR * offset)

    def in_order(self, place: NDArray[np.int64]) -> ProgramTables:
        """The same ops, op k at ``place[k]``; names are numbered as they come."""
        other = ProgramTables()
        rows = np.empty_like(self.rows.rows())
        rows[place] = self.rows.rows()
        rows[:, 0] = _renumbered(rows[:, 0], self.ops, other.ops)
        rows[:, 1] = _renumbered(rows[:, 1], self.streams, other.streams)
        rows[:, 2] = _renumbered(rows[:, 2], self.phases, other.phases)
        other.rows.extend(rows)
        other.waits.extend(place[self.waits.rows()])
        other.carries.extend(place[self.carries.rows()])
        for own_table, table in ((self.memory, other.memory), (self.pool_use, other.pool_use)):
            moved = own_table.rows().copy()
            moved[:, 0] = place[moved[:, 0]]
            table.extend(moved)
        other.keys.update(self.keys)
        other.pools.update(self.pools)
        return other


def _numbers(theirs: Mapping[_Name, int], own: dict[_Name, int]) -> NDArray[np.int64]:
    """What other names are numbered here; those that are not known yet are added."""
    return np.array([own.setdefault(name, len(own)) for name in theirs], dtype=np.int64)


def _renumbered(column: NDArray[np.int64], names: Mapping[_Name, int], own: dict[_Name, int]) -> NDArray[np.int64]:
    """A column that counts names by their order in it."""
    known = list(names)
    number = np.empty(len(known), dtype=np.int64)
    for k in dict.fromkeys(column.tolist()):
        number[k] = own.setdefault(known[k], len(own))
    return number[column]
