"""The table of everything with a capacity: links by direction, bundles, memories, drives.

A table is made of *blocks*: equal resources in a regular shape, so that a million links cost three numbers and a name
pattern. A resource is known in the engine by its row and to people by its name, ``node3/gpu1/nic.tx``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import nearest_name
from clustersim.units import Unit

__all__ = ["MOST_CAPACITY", "MOST_LATENCY", "Block", "ResourceTable"]

MOST_CAPACITY = 10**18
"""Largest capacity of a resource [B/s]: loads and capacities are whole numbers of 64 bits."""

MOST_LATENCY = 10**6
"""Largest latency of a resource [s]: sums of them along a route are whole nanoseconds of 64 bits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Equal resources in a regular shape.

    Parameters
    ----------
    kind : str
        what they are: ``nvlink``, ``pcie``, ``nic``, ``leaf_up``, ``hbm``, ``dram``, ``drive``, ``cores`` …
    shape : tuple[int, ...]
        how many, by the indices of their names
    capacity : float
        of each [B/s], or nanoseconds of service a second for a ``drive`` and for ``cores``
    latency : float
        one way through it [s]
    label : str
        name pattern over the indices: ``"node{}/gpu{}/nvlink.up"``
    num_links : int
        parallel equal links that one resource stands for (ideal ECMP makes them one)
    start : int
        number of the first one, along the first index
    uneven : bool
        whether the two directions of these links differ by nature, as those of NVLink-C2C
    """

    kind: str
    shape: tuple[int, ...]
    capacity: Annotated[float, Unit("B/s")]
    latency: Annotated[float, Unit("s")]
    label: str
    num_links: int = 1
    start: int = 0
    uneven: bool = False

    @property
    def pattern(self) -> str:
        """Label, with the range of the first index where that does not start at 0: ``node{2..3}/gpu{}/hbm``."""
        return (
            self.label.replace("{}", f"{{{self.start}..{self.start + self.shape[0] - 1}}}", 1)
            if self.start
            else self.label
        )

    @property
    def count(self) -> int:
        """Number of resources in the block."""
        return int(np.prod(self.shape, dtype=np.int64))


class ResourceTable:
    """All resources of a topology, as arrays.

    Attributes
    ----------
    blocks : tuple[Block, ...]
    first : NDArray[int64], shape (len(blocks) + 1,)
        row of each block's first resource; the last entry is the number of resources
    capacity : NDArray[int64], shape (num_resources,)
        [B/s]; whole numbers, so that sums of loads are exact
    latency_ns : NDArray[int64], shape (num_resources,)
    kind : NDArray[int16], shape (num_resources,)
        index into ``kinds``
    kinds : tuple[str, ...]
    """

    __slots__ = ("blocks", "capacity", "first", "kind", "kinds", "latency_ns")

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = tuple(blocks)
        counts = np.array([b.count for b in self.blocks], dtype=np.int64)
        self.first: NDArray[np.int64] = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        for block in self.blocks:
            if not block.capacity <= MOST_CAPACITY:
                raise ValueError(f"{block.label}: capacity {block.capacity} must be at most {MOST_CAPACITY:g} B/s")
            if not abs(block.latency) <= MOST_LATENCY:
                raise ValueError(f"{block.label}: latency {block.latency} must be at most {MOST_LATENCY:g} s")
        self.kinds = tuple(dict.fromkeys(b.kind for b in self.blocks))
        self.capacity: NDArray[np.int64] = np.repeat(
            np.array([round(b.capacity) for b in self.blocks], dtype=np.int64), counts
        )
        self.latency_ns: NDArray[np.int64] = np.repeat(
            np.array([round(b.latency * 1e9) for b in self.blocks], dtype=np.int64), counts
        )
        self.kind: NDArray[np.int16] = np.repeat(
            np.array([self.kinds.index(b.kind) for b in self.blocks], dtype=np.int16), counts
        )

    def __len__(self) -> int:
        return int(self.first[-1])

    def name(self, row: int) -> str:
        """Name of the resource in ``row``.

        Raises
        ------
        IndexError
            when there is no such row
        """
        block = self.block(row)
        head, *pieces = block.label.split("{}")
        return head + "".join(f"{i}{piece}" for i, piece in zip(self.index(row), pieces, strict=True))

    def index(self, row: int) -> tuple[int, ...]:
        """The indices in the name of the resource in ``row``."""
        number = self._number(row)
        block = self.blocks[number]
        index = [int(i) for i in np.unravel_index(row - int(self.first[number]), block.shape)]
        return (index[0] + block.start, *index[1:]) if index else ()

    def names(self, rows: Sequence[int] | NDArray[np.int64] | None = None) -> list[str]:
        """Names of ``rows``, of all when None."""
        return [self.name(int(r)) for r in (range(len(self)) if rows is None else rows)]

    def find(self, name: str) -> int:
        """Row of the resource called ``name``.

        Raises
        ------
        KeyError
            when there is none
        """
        for block, first in zip(self.blocks, self.first, strict=False):
            index = _match(block, name)
            if index is not None:
                return int(first) + index
        raise KeyError(name)

    def nearest(self, name: str) -> str | None:
        """A resource whose name looks like ``name``: the numbers given, made to fit, in the closest name pattern."""
        numbers = [int(number) for number in re.findall(r"\d+", name)] or [0]
        patterns: dict[str, list[Block]] = {}
        for block in self.blocks:
            patterns.setdefault(re.sub(r"\{\}|\d+", "#", block.label), []).append(block)
        pattern = nearest_name(re.sub(r"\d+", "#", name), patterns)
        if pattern is None:
            return None
        like = patterns[pattern]
        block = next((b for b in like if b.shape and numbers[0] < b.start + b.shape[0]), like[-1])
        numbers[0] -= block.start
        index = [min(max(number, 0), n - 1) for number, n in zip(numbers, block.shape, strict=False)]
        index += [0] * (len(block.shape) - len(index))
        row = int(np.ravel_multi_index(index, block.shape)) if index else 0
        return self.name(int(self.first[self.blocks.index(block)]) + row)

    def block(self, row: int) -> Block:
        """The block that the resource in ``row`` belongs to."""
        return self.blocks[self._number(row)]

    def _number(self, row: int) -> int:
        """Position of that block."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} is not one of {len(self)} resources")
        return int(np.searchsorted(self.first, row, side="right")) - 1

    def with_capacity(self, rows: NDArray[np.int64], capacity: NDArray[np.int64]) -> ResourceTable:
        """A table in which ``rows`` have ``capacity`` [B/s] instead."""
        changed = ResourceTable.__new__(ResourceTable)
        for field in self.__slots__:
            setattr(changed, field, getattr(self, field))
        changed.capacity = self.capacity.copy()
        changed.capacity[rows] = capacity
        return changed


def _match(block: Block, name: str) -> int | None:
    """Position of ``name`` within ``block``, None when it is not one of its names."""
    pieces = block.label.split("{}")
    if not name.startswith(pieces[0]):
        return None
    rest, index = name[len(pieces[0]) :], []
    for piece in pieces[1:]:
        digits = len(rest) - len(rest.lstrip("0123456789"))
        if not digits or not rest[digits:].startswith(piece):
            return None
        index.append(int(rest[:digits]))
        rest = rest[digits + len(piece) :]
    if index:
        index[0] -= block.start
    if rest or any(not 0 <= i < n for i, n in zip(index, block.shape, strict=True)):
        return None
    return int(np.ravel_multi_index(index, block.shape)) if index else 0
