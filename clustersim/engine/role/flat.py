"""A program over all its rounds, in the form that the event loop walks: successor lists and predecessor counts."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.role.edges import all_edges, direct_edges
from clustersim.workload.arrays import Arrays

__all__ = ["Flat", "flatten", "int32"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Flat:
    """N = rounds · ops of the program.

    Attributes
    ----------
    arrays : Arrays
        one round
    rounds : int
        times that it is played
    edges : NDArray[int64], shape (E, 2)
        (before, after) over all rounds, sorted by ``after``
    direct : NDArray[int64], shape (D, 2)
        the same without those that others imply: where b waits for a and c for both, c waits for b only
    targets, first_target : array of int32
        of op i, ``targets[first_target[i] : first_target[i + 1]]`` wait for it directly
    num_before : bytearray or list[int]
        predecessors of each op among these; a template to copy
    follower : NDArray[int64], shape (N,)
        the op that is released by this one only and is all that this one releases, else -1
    roots : list[int]
        ops without predecessors
    slots : tuple[str, ...]
    slot, sequence : array of int32
        of each op: index into ``slots`` and position in the slot's order; -1 for ops that are no collective
    slot_ops : list[array of int32]
        by slot, its ops in order
    pooled : dict[int, list[tuple[str, int]]]
        ops that take from pools: (pool, amount)
    giving : dict[int, list[tuple[str, int]]]
        ops that give back
    """

    arrays: Arrays
    rounds: int
    edges: NDArray[np.int64]
    direct: NDArray[np.int64]
    targets: array[int]
    first_target: array[int]
    num_before: bytearray | list[int]
    follower: NDArray[np.int64]
    roots: list[int]
    slots: tuple[str, ...]
    slot: array[int]
    sequence: array[int]
    slot_ops: Sequence[array[int]]
    pooled: dict[int, list[tuple[str, int]]]
    giving: dict[int, list[tuple[str, int]]]

    def __len__(self) -> int:
        return len(self.slot)


def flatten(arrays: Arrays, rounds: int) -> Flat:
    """Lay ``rounds`` copies of a program end to end, joined by stream order and by what the program carries over."""
    n = len(arrays)
    total = n * rounds
    edges = all_edges(arrays, rounds)
    direct = direct_edges(edges, np.tile(arrays.stream, rounds).astype(np.int64))
    before, after = direct.T
    released = np.bincount(before, minlength=total)
    count = np.bincount(after, minlength=total)
    alone = (released[before] == 1) & (count[after] == 1)
    follower = np.full(total, -1, dtype=np.int64)
    follower[before[alone]] = after[alone]
    small = not len(count) or int(count.max()) < 256
    slot = np.full(total, -1, dtype=np.int64)
    sequence = np.full(total, -1, dtype=np.int64)
    slots = arrays.slots()
    slot_ops = []
    for k, numbers in enumerate(slots.values()):
        ops = (np.arange(rounds)[:, None] * n + numbers[None, :]).reshape(-1)
        slot[ops] = k
        sequence[ops] = np.arange(len(ops))
        slot_ops.append(int32(ops))
    pooled: dict[int, list[tuple[str, int]]] = {}
    giving: dict[int, list[tuple[str, int]]] = {}
    for op, at, pool, amount in arrays.pool_use.tolist():
        for number in range(rounds):
            (giving if at else pooled).setdefault(number * n + op, []).append((arrays.pools[pool], amount))
    return Flat(
        arrays=arrays,
        rounds=rounds,
        edges=edges,
        direct=direct,
        targets=int32(after[np.argsort(before, kind="stable")]),
        first_target=int32(np.append(0, np.cumsum(released))),
        num_before=bytearray(count.astype(np.uint8).tobytes()) if small else count.tolist(),
        follower=follower,
        roots=np.flatnonzero(count == 0).tolist(),
        slots=tuple(slots),
        slot=int32(slot),
        sequence=int32(sequence),
        slot_ops=slot_ops,
        pooled=pooled,
        giving=giving,
    )


def int32(values: NDArray[np.integer]) -> array[int]:
    """As the loop reads them: an array has an eighth of a list's bytes, and what is read once stays in no cache."""
    return array("i", values.astype(np.int32).tobytes())
