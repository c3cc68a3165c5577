"""A program: the ops of one role, built once, shared by every rank of that role, held as arrays.

Ops on one stream run in the order in which they were added; ``after`` adds dependencies across streams. Nothing in a
program knows a rank, a device or a second, so one program serves every rank of its role and every what-if.

A program covers one optimizer step, or several that differ: orders that alternate, a save every n-th step. A run plays
it in rounds, again and again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays
from clustersim.workload.op import Op
from clustersim.workload.table import Table

__all__ = ["Program"]

_COLUMNS = ("op", "stream", "phase", "micro_batch", "layer", "stage", "step")
"""Of a program's rows: numbers of the op, its stream and its phase, and labels."""

_MICRO_BATCH, _STEP = _COLUMNS.index("micro_batch"), _COLUMNS.index("step")
_FIRST_OF_FOUR = np.array([1, 0, 0, 0])


class Program:
    """Builds a program op by op.

    Parameters
    ----------
    name : str
        of the role, for messages: ``stage 3``

    Attributes
    ----------
    resident : dict[str, int]
        bytes held from beginning to end, by ``"tier/category"``: ``{"gpu/weights": 14_000_000_000}``
    """

    def __init__(self, name: str = "program") -> None:
        self.name = name
        self.resident: dict[str, int] = {}
        self._ops: dict[Op, int] = {}
        self._streams: dict[str, int] = {}
        self._phases: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        self._pools: dict[str, int] = {}
        self._rows = Table(len(_COLUMNS))
        self._waits = Table(2, ordered=False)
        self._carries = Table(2, ordered=False)
        self._memory = Table(4)
        self._pool_use = Table(4)
        self._step = 0  # that of the next op
        self._copied: dict[Program, _Copy] = {}
        self._woven: dict[tuple[Any, ...], tuple[Program, list[list[int]]]] = {}  # both live until it is frozen
        self._arrays: Arrays | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        """One line: name, ops, streams."""
        return f"Program({self.name}: {len(self):,} ops on {len(self._streams)} streams)"

    def add(
        self,
        op: Op,
        *,
        stream: str,
        after: Iterable[int] = (),
        start_bytes: Mapping[str, int] | None = None,
        end_bytes: Mapping[str, int] | None = None,
        takes: Mapping[str, int] | None = None,
        gives: Mapping[str, int] | None = None,
        phase: str = "",
        micro_batch: int = -1,
        layer: int = -1,
        stage: int = -1,
        step: int | None = None,
    ) -> int:
        """Put ``op`` at the end of ``stream`` and return its number.

        Parameters
        ----------
        op : Op
            the work
        stream : str
            in-order queue; ops of other streams may run at the same time
        after : Iterable[int]
            numbers of ops that must have ended
        start_bytes, end_bytes : Mapping[str, int]
            signed change of the bytes held when it starts and when it ends, by ``"tier/category"``
        takes, gives : Mapping[str, int]
            amounts of named pools that it needs before it starts and gives back when it ends
        phase : str
            ``forward``, ``backward``, ``optimizer`` …
        micro_batch, layer, stage : int
            labels of the trace
        step : int, optional
            optimizer step that it belongs to, from 0; by default the one that :meth:`end_step` has come to

        Raises
        ------
        ValueError
            when ``after`` names an op that is not there yet, or ``step`` a step
        """
        number = len(self._rows)
        if step is not None and not 0 <= step <= self._step:
            raise ValueError(f"{self.name}: op {number} ({op.name}): step={step} must be one from 0 to {self._step}")
        for before in after:
            if not 0 <= before < number:
                raise ValueError(f"{self.name}: op {number} ({op.name}): after={before} must name an earlier op")
            self._waits.add(before, number)
        self._rows.add(
            self._ops.setdefault(op, len(self._ops)),
            self._streams.setdefault(stream, len(self._streams)),
            self._phases.setdefault(phase, len(self._phases)),
            micro_batch,
            layer,
            stage,
            self._step if step is None else step,
        )
        for at, changes in ((0, start_bytes), (1, end_bytes)):
            for key, nbytes in (changes or {}).items():
                self._memory.add(number, at, self._keys.setdefault(key, len(self._keys)), nbytes)
        for at, amounts in ((0, takes), (1, gives)):
            for pool, amount in (amounts or {}).items():
                self._pool_use.add(number, at, self._pools.setdefault(pool, len(self._pools)), amount)
        self._arrays = None
        return number

    def add_like(
        self, like: NDArray[np.int64], ops: Sequence[Op], which: NDArray[np.int64], *, stream: str
    ) -> NDArray[np.int64]:
        """Put many ops at the end of ``stream``, each with the labels of one that is there; return their numbers.

        Parameters
        ----------
        like : NDArray[int64], shape (n,)
            numbers of the ops whose phase, micro-batch, layer, stage and step they have
        ops : Sequence[Op]
        which : NDArray[int64], shape (n,)
            what each of them is, as an index into ``ops``
        """
        rows = self._rows.rows()[like]
        number, come = np.full(len(ops), -1, dtype=np.int64), np.unique(which, return_index=True)
        for k in come[0][np.argsort(come[1])].tolist():  # numbered as they come, as one by one
            number[k] = self._ops.setdefault(ops[k], len(self._ops))
        rows[:, 0] = number[which]
        rows[:, 1] = self._streams.setdefault(stream, len(self._streams))
        first = len(self._rows)
        self._rows.extend(rows)
        self._arrays = None
        return np.arange(first, len(self._rows))

    def extend(
        self, other: Program, *, after: Mapping[int, Iterable[int]] | None = None, micro_batch: int | None = None
    ) -> int:
        """Append a copy of ``other`` and return the offset of its op numbers.

        Parameters
        ----------
        other : Program
            a fragment: one layer's forward, one chunk's backward; its ``resident`` bytes are not taken over, and its
            first step goes on with the one that this program has come to
        after : Mapping[int, Iterable[int]]
            for an op number of ``other``, further ops of this program that must have ended before it
        micro_batch : int, optional
            label for all its ops instead of their own
        """
        offset = self._append(other, micro_batch)
        self._step += other._step
        for number, befores in (after or {}).items():
            self.depend(number + offset, after=befores)
        return offset

    def _append(self, other: Program, micro_batch: int | Sequence[int] | None) -> int:
        """Append a copy and return its offset; of several micro-batches, the labels of ``other`` say which is whose."""
        offset = len(self._rows)
        copied = self._copied.get(other)
        if copied is None or copied.lengths != other._lengths():
            copied = self._copied[other] = self._copy_of(other)
        rows = copied.rows
        if self._step or micro_batch is not None:
            rows = rows.copy()
            rows[:, _STEP] += self._step
        if micro_batch is not None:
            own = micro_batch if isinstance(micro_batch, int) else np.array(micro_batch)[rows[:, _MICRO_BATCH]]
            rows[:, _MICRO_BATCH] = own
        self._rows.extend(rows)
        self._waits.extend(copied.waits + offset)
        self._carries.extend(copied.carries + offset)
        self._memory.extend(copied.memory + _FIRST_OF_FOUR * offset)
        self._pool_use.extend(copied.pool_use + _FIRST_OF_FOUR * offset)
        self._arrays = None
        return offset

    def _copy_of(self, other: Program) -> _Copy:
        """What a copy of ``other`` looks like here, but for its offset."""
        rows, memory, pool_use = (t.rows().copy() for t in (other._rows, other._memory, other._pool_use))
        rows[:, 0] = _numbers(other._ops, self._ops)[rows[:, 0]]
        rows[:, 1] = _numbers(other._streams, self._streams)[rows[:, 1]]
        rows[:, 2] = _numbers(other._phases, self._phases)[rows[:, 2]]
        memory[:, 2] = _numbers(other._keys, self._keys)[memory[:, 2]]
        pool_use[:, 2] = _numbers(other._pools, self._pools)[pool_use[:, 2]]
        return _Copy(
            lengths=other._lengths(),
            rows=rows,
            waits=other._waits.rows(),
            carries=other._carries.rows(),
            memory=memory,
            pool_use=pool_use,
        )

    def _lengths(self) -> tuple[int, ...]:
        """Programs only grow, so these say whether one has changed."""
        return tuple(len(t) for t in (self._rows, self._waits, self._carries, self._memory, self._pool_use))

    def weave(self, others: Sequence[Program], *, micro_batches: Sequence[int]) -> list[Sequence[int]]:
        """Append copies of several fragments with their spans alternating, each evenly over the whole length.

        A span ends before a kernel that waits for another stream, so that what one fragment waits for passes beside the
        span of another. Of spans that are as far, that of the last fragment goes first.

        Parameters
        ----------
        others : Sequence[Program]
            one is simply appended
        micro_batches : Sequence[int]
            label of the ops of each

        Returns
        -------
        list[Sequence[int]]
            for each fragment the numbers of its ops here

        Raises
        ------
        ValueError
            when a fragment is of several steps, which follow one another
        """
        for other in others:
            if other._step:
                raise ValueError(f"{self.name}: weave: {other.name} ends a step, and woven fragments are of one")
        if len(others) == 1:
            offset = self._append(others[0], micro_batches[0])
            return [range(offset, offset + len(others[0]))]
        key = tuple((other, *other._lengths()) for other in others)
        if key not in self._woven:
            self._woven[key] = _weave(others)
        woven, places = self._woven[key]
        offset = self._append(woven, micro_batches)
        return [[offset + n for n in place] for place in places]

    def _spans(self) -> list[int]:
        """For each op the number of its span, see :meth:`weave`."""
        kernels = self._streams.get("compute", -1)
        before, after = self._waits.rows().T
        stream = self._rows.rows()[:, 1]
        begins = np.zeros(len(self), dtype=bool)
        begins[after[(stream[after] == kernels) & (stream[before] != kernels)]] = True
        begins[:1] = False
        spans: list[int] = np.cumsum(begins).tolist()
        return spans

    def _in_order(self, place: NDArray[np.int64]) -> Program:
        """The same ops, op k at ``place[k]``; names are numbered as they come."""
        other = Program(self.name)
        rows = np.empty_like(self._rows.rows())
        rows[place] = self._rows.rows()
        rows[:, 0] = _renumbered(rows[:, 0], self._ops, other._ops)
        rows[:, 1] = _renumbered(rows[:, 1], self._streams, other._streams)
        rows[:, 2] = _renumbered(rows[:, 2], self._phases, other._phases)
        other._rows.extend(rows)
        other._waits.extend(place[self._waits.rows()])
        other._carries.extend(place[self._carries.rows()])
        for own_table, table in ((self._memory, other._memory), (self._pool_use, other._pool_use)):
            moved = own_table.rows().copy()
            moved[:, 0] = place[moved[:, 0]]
            table.extend(moved)
        other._keys.update(self._keys)
        other._pools.update(self._pools)
        return other

    def depend(self, op: int, *, after: Iterable[int]) -> None:
        """Make ``op`` wait for further ops; :func:`clustersim.workload.check.check` finds cycles made this way."""
        for before in after:
            if not (0 <= before < len(self._rows) and 0 <= op < len(self._rows)):
                raise ValueError(f"{self.name}: op {op}: after={before} must name ops of this program")
            self._waits.add(before, op)
        self._arrays = None

    def depend_all(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> None:
        """Make ``after[k]`` wait for ``before[k]``, for all k."""
        waits = np.stack([before, after], axis=1)
        if len(waits) and not 0 <= waits.min() <= waits.max() < len(self._rows):
            raise ValueError(f"{self.name}: waits must name ops of this program")
        self._waits.extend(waits)
        self._arrays = None

    def carry(self, before: int, after: int) -> None:
        """Make op ``after`` of the next round wait for op ``before`` of this one: the order that crosses rounds."""
        if not (0 <= before < len(self._rows) and 0 <= after < len(self._rows)):
            raise ValueError(f"{self.name}: carry({before}, {after}) must name ops of this program")
        self._carries.add(before, after)
        self._arrays = None

    def end_step(self) -> None:
        """End an optimizer step: ops added from now on belong to the next one.

        This is a label of the trace and no barrier: what waits for what across steps is for streams and ``after`` to
        say, and for :meth:`carry` from the last step to the first of the next round. The end of the last step may be
        left out.
        """
        self._step += 1
        self._arrays = None

    @property
    def period(self) -> int:
        """Optimizer steps that it covers, at least 1."""
        return max(self._step, 1 + int(self._rows.rows()[:, _STEP].max(initial=0)))

    def arrays(self) -> Arrays:
        """The program as arrays; the same object until the program changes."""
        if self._arrays is None:
            self._arrays = self._freeze()
        return self._arrays

    def _freeze(self) -> Arrays:
        n = len(self._rows)
        column = dict(zip(_COLUMNS, self._rows.rows().T, strict=True))
        stream = column["stream"].astype(np.int16)
        by_stream = np.argsort(stream, kind="stable")
        same = stream[by_stream[1:]] == stream[by_stream[:-1]]
        before, after = self._waits.rows().T
        # sorted, not ``np.unique``: its hashing costs several times as much on keys that are nearly in order
        edges = np.sort(
            np.concatenate([after * n + before, by_stream[1:][same] * n + by_stream[:-1][same]]), kind="stable"
        )
        edges = edges[np.concatenate([[True], edges[1:] != edges[:-1]])] if len(edges) else edges
        self._copied.clear()  # what served to write it
        self._woven.clear()
        columns: dict[str, Any] = {
            "op": column["op"].astype(np.int32),
            "ops": tuple(self._ops),
            "stream": stream,
            "streams": tuple(self._streams),
            "phase": column["phase"].astype(np.int16),
            "phases": tuple(self._phases),
            "micro_batch": column["micro_batch"].astype(np.int32),
            "layer": column["layer"].astype(np.int32),
            "stage": column["stage"].astype(np.int32),
            "step": column["step"].astype(np.int32),
            "period": self.period,
            "edges": np.stack([edges % max(n, 1), edges // max(n, 1)], axis=1).astype(np.int32),
            "carries": np.unique(self._carries.rows(), axis=0).astype(np.int32),
            "memory": self._memory.rows(),
            "memory_keys": tuple(self._keys),
            "pool_use": self._pool_use.rows(),
            "pools": tuple(self._pools),
            "resident": dict(self.resident),
        }
        digest = hashlib.blake2b(digest_size=16)
        for name, column in columns.items():
            digest.update(name.encode())
            digest.update(column.tobytes() if isinstance(column, np.ndarray) else repr(column).encode())
        return Arrays(**columns, digest=digest.digest())


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Copy:
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


_Name = TypeVar("_Name", Op, str)


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


def _weave(fragments: Sequence[Program]) -> tuple[Program, list[list[int]]]:
    """A program of several woven ones, each op labelled with the number of its fragment; where their ops stand."""
    apart = Program()
    offsets = [apart.extend(fragment, micro_batch=which) for which, fragment in enumerate(fragments)]
    order = sorted(
        ((2 * span + 1) / (2 * spans[-1] + 2), -which, offset + k)
        for which, (fragment, offset) in enumerate(zip(fragments, offsets, strict=True))
        for spans in [fragment._spans()]
        for k, span in enumerate(spans)
    )
    place = np.empty(len(apart), dtype=np.int64)
    place[[k for *_, k in order]] = np.arange(len(apart))
    places = [place[offset : offset + len(of)].tolist() for offset, of in zip(offsets, fragments, strict=True)]
    return apart._in_order(place), places
