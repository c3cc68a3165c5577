"""A program: the ops of one role, built once, shared by every rank of that role, held as arrays.

Ops on one stream run in the order in which they were added; ``after`` adds dependencies across streams. Nothing in a
program knows a rank, a device or a second, so one program serves every rank of its role and every what-if.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from clustersim.workload.arrays import Arrays
from clustersim.workload.op import Op

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
        self._ops: dict[Op, int] = {}
        self._streams: dict[str, int] = {}
        self._phases: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        self._pools: dict[str, int] = {}
        self._op: list[int] = []
        self._stream: list[int] = []
        self._phase: list[int] = []
        self._micro_batch: list[int] = []
        self._layer: list[int] = []
        self._stage: list[int] = []
        self._before: list[int] = []
        self._after: list[int] = []
        self._carries: list[tuple[int, int]] = []
        self._memory: list[tuple[int, int, int, int]] = []
        self._pool_use: list[tuple[int, int, int, int]] = []
        self._arrays: Arrays | None = None

    def __len__(self) -> int:
        return len(self._op)

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

        Raises
        ------
        ValueError
            when ``after`` names an op that is not there yet
        """
        number = len(self._op)
        for before in after:
            if not 0 <= before < number:
                raise ValueError(f"{self.name}: op {number} ({op.name}): after={before} must name an earlier op")
            self._before.append(before)
            self._after.append(number)
        self._op.append(self._ops.setdefault(op, len(self._ops)))
        self._stream.append(self._streams.setdefault(stream, len(self._streams)))
        self._phase.append(self._phases.setdefault(phase, len(self._phases)))
        self._micro_batch.append(micro_batch)
        self._layer.append(layer)
        self._stage.append(stage)
        for at, changes in ((0, start_bytes), (1, end_bytes)):
            for key, nbytes in (changes or {}).items():
                self._memory.append((number, at, self._keys.setdefault(key, len(self._keys)), nbytes))
        for at, amounts in ((0, takes), (1, gives)):
            for pool, amount in (amounts or {}).items():
                self._pool_use.append((number, at, self._pools.setdefault(pool, len(self._pools)), amount))
        self._arrays = None
        return number

    def extend(
        self, other: Program, *, after: Mapping[int, Iterable[int]] | None = None, micro_batch: int | None = None
    ) -> int:
        """Append a copy of ``other`` and return the offset of its op numbers.

        Parameters
        ----------
        other : Program
            a fragment: one layer's forward, one chunk's backward; its ``resident`` bytes are not taken over
        after : Mapping[int, Iterable[int]]
            for an op number of ``other``, further ops of this program that must have ended before it
        micro_batch : int, optional
            label for all its ops instead of their own
        """
        offset = len(self._op)
        ops = [self._ops.setdefault(op, len(self._ops)) for op in other._ops]
        streams = [self._streams.setdefault(name, len(self._streams)) for name in other._streams]
        phases = [self._phases.setdefault(name, len(self._phases)) for name in other._phases]
        keys = [self._keys.setdefault(name, len(self._keys)) for name in other._keys]
        pools = [self._pools.setdefault(name, len(self._pools)) for name in other._pools]
        self._op += [ops[k] for k in other._op]
        self._stream += [streams[k] for k in other._stream]
        self._phase += [phases[k] for k in other._phase]
        self._micro_batch += other._micro_batch if micro_batch is None else [micro_batch] * len(other)
        self._layer += other._layer
        self._stage += other._stage
        self._before += [k + offset for k in other._before]
        self._after += [k + offset for k in other._after]
        self._carries += [(a + offset, b + offset) for a, b in other._carries]
        self._memory += [(k + offset, at, keys[key], nbytes) for k, at, key, nbytes in other._memory]
        self._pool_use += [(k + offset, at, pools[pool], amount) for k, at, pool, amount in other._pool_use]
        for number, befores in (after or {}).items():
            self.depend(number + offset, after=befores)
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
        """
        if len(others) == 1:
            offset = self.extend(others[0], micro_batch=micro_batches[0])
            return [range(offset, offset + len(others[0]))]
        parts = [Program(other.name) for other in others]
        for part, other, micro_batch in zip(parts, others, micro_batches, strict=True):
            part.extend(other, micro_batch=micro_batch)
        order = sorted(
            ((2 * span + 1) / (2 * spans[-1] + 2), -which, which, k)
            for which, part in enumerate(parts)
            for spans in [part._spans()]
            for k, span in enumerate(spans)
        )
        offset = len(self._op)
        places: list[list[int]] = [[0] * len(part) for part in parts]
        for number, (*_, which, k) in enumerate(order):
            places[which][k] = offset + number
        apart = Program(self.name)
        offsets = [apart.extend(part) for part in parts]
        old = [offsets[which] + k for *_, which, k in order]
        self._take(apart, old, {o: offset + n for n, o in enumerate(old)})
        return list(places)

    def _spans(self) -> list[int]:
        """For each op the number of its span, see :meth:`weave`."""
        kernels = self._streams.get("compute", -1)
        waits = {
            after
            for before, after in zip(self._before, self._after, strict=True)
            if self._stream[after] == kernels != self._stream[before]
        }
        number, spans = 0, []
        for k in range(len(self)):
            number += k > 0 and k in waits
            spans.append(number)
        return spans

    def _take(self, other: Program, order: Sequence[int], place: Mapping[int, int]) -> None:
        """Append the ops of ``other`` in another order."""
        ops, streams, phases = list(other._ops), list(other._streams), list(other._phases)
        keys, pools = list(other._keys), list(other._pools)
        for k in order:
            self._op.append(self._ops.setdefault(ops[other._op[k]], len(self._ops)))
            self._stream.append(self._streams.setdefault(streams[other._stream[k]], len(self._streams)))
            self._phase.append(self._phases.setdefault(phases[other._phase[k]], len(self._phases)))
            self._micro_batch.append(other._micro_batch[k])
            self._layer.append(other._layer[k])
            self._stage.append(other._stage[k])
        self._before += [place[k] for k in other._before]
        self._after += [place[k] for k in other._after]
        self._carries += [(place[a], place[b]) for a, b in other._carries]
        for k, at, key, nbytes in other._memory:
            self._memory.append((place[k], at, self._keys.setdefault(keys[key], len(self._keys)), nbytes))
        for k, at, pool, amount in other._pool_use:
            self._pool_use.append((place[k], at, self._pools.setdefault(pools[pool], len(self._pools)), amount))
        self._arrays = None

    def depend(self, op: int, *, after: Iterable[int]) -> None:
        """Make ``op`` wait for further ops; :func:`clustersim.workload.check.check` finds cycles made this way."""
        for before in after:
            if not (0 <= before < len(self._op) and 0 <= op < len(self._op)):
                raise ValueError(f"{self.name}: op {op}: after={before} must name ops of this program")
            self._before.append(before)
            self._after.append(op)
        self._arrays = None

    def carry(self, before: int, after: int) -> None:
        """Make op ``after`` of the next step wait for op ``before`` of this one: the order that crosses steps."""
        if not (0 <= before < len(self._op) and 0 <= after < len(self._op)):
            raise ValueError(f"{self.name}: carry({before}, {after}) must name ops of this program")
        self._carries.append((before, after))
        self._arrays = None

    def arrays(self) -> Arrays:
        """The program as arrays; the same object until the program changes."""
        if self._arrays is None:
            self._arrays = self._freeze()
        return self._arrays

    def _freeze(self) -> Arrays:
        n = len(self._op)
        stream = np.array(self._stream, dtype=np.int16)
        explicit = np.array([self._before, self._after], dtype=np.int64).reshape(2, -1)
        by_stream = np.argsort(stream, kind="stable")
        same = stream[by_stream[1:]] == stream[by_stream[:-1]]
        order = np.stack([by_stream[:-1][same], by_stream[1:][same]])
        before, after = np.concatenate([explicit, order], axis=1) if n else explicit
        unique = np.unique(after * max(n, 1) + before)
        columns: dict[str, Any] = {
            "op": np.array(self._op, dtype=np.int32),
            "ops": tuple(self._ops),
            "stream": stream,
            "streams": tuple(self._streams),
            "phase": np.array(self._phase, dtype=np.int16),
            "phases": tuple(self._phases),
            "micro_batch": np.array(self._micro_batch, dtype=np.int32),
            "layer": np.array(self._layer, dtype=np.int32),
            "stage": np.array(self._stage, dtype=np.int32),
            "edges": np.stack([unique % max(n, 1), unique // max(n, 1)], axis=1).astype(np.int32),
            "carries": np.array(sorted(set(self._carries)), dtype=np.int32).reshape(-1, 2),
            "memory": np.array(self._memory, dtype=np.int64).reshape(-1, 4),
            "memory_keys": tuple(self._keys),
            "pool_use": np.array(self._pool_use, dtype=np.int64).reshape(-1, 4),
            "pools": tuple(self._pools),
            "resident": dict(self.resident),
        }
        digest = hashlib.blake2b(digest_size=16)
        for name, column in columns.items():
            digest.update(name.encode())
            digest.update(column.tobytes() if isinstance(column, np.ndarray) else repr(column).encode())
        return Arrays(**columns, digest=digest.digest())
