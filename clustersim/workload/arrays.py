"""A program as arrays: its ops as columns, which is what runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.op import Collective, Op

__all__ = ["Arrays"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Arrays:
    """A program's ops as columns; n ops, e dependencies.

    Attributes
    ----------
    op : NDArray[int32], shape (n,)
        index into ``ops``
    ops : tuple[Op, ...]
        the distinct ops
    stream : NDArray[int16], shape (n,)
        index into ``streams``
    streams : tuple[str, ...]
    phase : NDArray[int16], shape (n,)
        index into ``phases``
    phases : tuple[str, ...]
    micro_batch, layer, stage : NDArray[int32], shape (n,)
        -1 where it does not apply
    step : NDArray[int32], shape (n,)
        optimizer step that it belongs to, from 0
    period : int
        optimizer steps that the program covers
    edges : NDArray[int32], shape (e, 2)
        (before, after), stream order included, sorted by ``after``, no duplicates
    carries : NDArray[int32], shape (c, 2)
        (op of one round, op of the next round that waits for it); a round is the program played once
    memory : NDArray[int64], shape (d, 4)
        (op, 0 at its start or 1 at its end, index into ``memory_keys``, signed bytes)
    memory_keys : tuple[str, ...]
        ``"tier/category"``: ``"gpu/activations"``
    pool_use : NDArray[int64], shape (u, 4)
        (op, 0 taken before its start or 1 given back at its end, index into ``pools``, amount)
    pools : tuple[str, ...]
    resident : dict[str, int]
        bytes held from beginning to end, by memory key
    digest : bytes
        of all of the above: two programs with one digest are one program
    """

    op: NDArray[np.int32]
    ops: tuple[Op, ...]
    stream: NDArray[np.int16]
    streams: tuple[str, ...]
    phase: NDArray[np.int16]
    phases: tuple[str, ...]
    micro_batch: NDArray[np.int32]
    layer: NDArray[np.int32]
    stage: NDArray[np.int32]
    step: NDArray[np.int32]
    period: int
    edges: NDArray[np.int32]
    carries: NDArray[np.int32]
    memory: NDArray[np.int64]
    memory_keys: tuple[str, ...]
    pool_use: NDArray[np.int64]
    pools: tuple[str, ...]
    resident: Mapping[str, int] = field(default_factory=dict)
    digest: bytes = b""

    def __len__(self) -> int:
        return len(self.op)

    def slots(self) -> dict[str, NDArray[np.int32]]:
        """For each group slot the ops that use it, in order: position in this list matches members of a group."""
        slot_of_op = [o.slot if isinstance(o, Collective) else None for o in self.ops]
        names = sorted({s for s in slot_of_op if s is not None})
        code = np.array([-1 if s is None else names.index(s) for s in slot_of_op], dtype=np.int32)
        used = code[self.op] if len(self.op) else np.empty(0, np.int32)
        return {name: np.flatnonzero(used == k).astype(np.int32) for k, name in enumerate(names)}
