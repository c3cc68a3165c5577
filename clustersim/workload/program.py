"""A program: the ops of one role, built once, shared by every rank of that role, held as arrays.

Ops on one stream run in the order in which they were added; ``after`` adds dependencies across streams. Nothing in a
program knows a rank, a device or a second, so one program serves every rank of its role and every what-if.

A program covers one optimizer step, or several that differ: orders that alternate, a save every n-th step. A run plays
it in rounds, again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays
from clustersim.workload.freeze import freeze
from clustersim.workload.op import Op
from clustersim.workload.program_tables import Copy, ProgramTables
from clustersim.workload.weave import weave

__all__ = ["Program"]


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
        self._tables = ProgramTables()
        self._step = 0  # that of the next op
        self._copied: dict[ProgramTables, Copy] = {}
        self._woven: dict[tuple[Any, ...], tuple[ProgramTables, list[list[int]]]] = {}  # both live until it is frozen
        self._arrays: Arrays | None = None

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        """One line: name, ops, streams."""
        return f"Program({self.name}: {len(self):,} ops on {len(self._tables.streams)} streams)"

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
        tables, number = self._tables, len(self)
        if step is not None and not 0 <= step <= self._step:
            raise ValueError(f"{self.name}: op {number} ({op.name}): step={step} must be one from 0 to {self._step}")
        for before in after:
            if not 0 <= before < number:
                raise ValueError(f"{self.name}: op {number} ({op.name}): after={before} must name an earlier op")
            tables.waits.add(before, number)
        row = (
            tables.ops.setdefault(op, len(tables.ops)),
            tables.streams.setdefault(stream, len(tables.streams)),
            tables.phases.setdefault(phase, len(tables.phases)),
            *(micro_batch, layer, stage, self._step if step is None else step),
        )
        tables.add(row, ((0, start_bytes), (1, end_bytes)), ((0, takes), (1, gives)))
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
        stream : str
            of all of them

        Returns
        -------
        NDArray[int64], shape (n,)
        """
        first = len(self)
        self._tables.add_like(like, ops, which, stream)
        self._arrays = None
        return np.arange(first, len(self))

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
        offset = self._append(other._tables, micro_batch)
        self._step += other._step
        for number, befores in (after or {}).items():
            self.depend(number + offset, after=befores)
        return offset

    def _append(self, other: ProgramTables, micro_batch: int | Sequence[int] | None) -> int:
        """Append a copy and return its offset; of several micro-batches, the labels of ``other`` say which is whose."""
        offset = len(self)
        copied = self._copied.get(other)
        if copied is None or copied.lengths != other.lengths:
            copied = self._copied[other] = self._tables.copy_of(other)
        self._tables.append(copied, self._step, micro_batch)
        self._arrays = None
        return offset

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
            offset = self._append(others[0]._tables, micro_batches[0])
            return [range(offset, offset + len(others[0]))]
        key = tuple((other, *other._tables.lengths) for other in others)
        if key not in self._woven:
            self._woven[key] = weave([other._tables for other in others])
        woven, places = self._woven[key]
        offset = self._append(woven, micro_batches)
        return [[offset + n for n in place] for place in places]

    def depend(self, op: int, *, after: Iterable[int]) -> None:
        """Make an op wait for further ones; :func:`clustersim.workload.check.check` finds cycles made this way.

        Parameters
        ----------
        op : int
            number of the op that waits
        after : Iterable[int]
            those that it waits for

        Raises
        ------
        ValueError
            for a number that is no op's of this program
        """
        for before in after:
            if not (0 <= before < len(self) and 0 <= op < len(self)):
                raise ValueError(f"{self.name}: op {op}: after={before} must name ops of this program")
            self._tables.waits.add(before, op)
        self._arrays = None

    def depend_all(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> None:
        """Make ``after[k]`` wait for ``before[k]``, for all k.

        Parameters
        ----------
        before, after : NDArray[int64], shape (n,)
            numbers of ops

        Raises
        ------
        ValueError
            for a number that is no op's of this program
        """
        waits = np.stack([before, after], axis=1)
        if len(waits) and not 0 <= waits.min() <= waits.max() < len(self):
            raise ValueError(f"{self.name}: waits must name ops of this program")
        self._tables.waits.extend(waits)
        self._arrays = None

    def carry(self, before: int, after: int) -> None:
        """Make an op of the next round wait for one of this round: the order that crosses rounds.

        Parameters
        ----------
        before : int
            number of the op that is waited for, in this round
        after : int
            of the one that waits, in the next

        Raises
        ------
        ValueError
            for a number that is no op's of this program
        """
        if not (0 <= before < len(self) and 0 <= after < len(self)):
            raise ValueError(f"{self.name}: carry({before}, {after}) must name ops of this program")
        self._tables.carries.add(before, after)
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
        return max(self._step, self._tables.num_steps)

    def arrays(self) -> Arrays:
        """The program as arrays; the same object until the program changes."""
        if self._arrays is None:
            self._arrays = freeze(self._tables, self.period, self.resident)
            self._copied.clear()  # what served to write it
            self._woven.clear()
        return self._arrays
