"""One node as builders describe it: its resources numbered from 0, and which of them each GPU's traffic crosses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.topology.resources import Block
from clustersim.topology.topology import LocalPath

__all__ = ["Layout", "Node", "Rows", "pad", "square"]

Rows = tuple[int, ...]
"""Resources of one node in order of travel."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Node:
    """What is inside one node: the GPUs that reach each other without the scale-out fabric.

    All rows count the node's own resources from 0; -1 pads.

    Parameters
    ----------
    gpus : tuple[GPU, ...]
        the distinct cards
    gpu_of : NDArray[int64], shape (num_gpus,)
        index into ``gpus``
    cpus : tuple[CPU, ...]
        the distinct sockets
    cpu_of : NDArray[int64], shape (num_gpus,)
        index into ``cpus``
    blocks : tuple[Block, ...]
        labels without the node: ``"gpu{}/nvlink.up"``
    between : NDArray[int64], shape (num_gpus, num_gpus, hops)
        from one GPU to another
    outward : NDArray[int64], shape (num_gpus, num_gpus, hops)
        from the first GPU to a network port beside the second
    inward : NDArray[int64], shape (num_gpus, num_gpus, hops)
        from a network port beside the first GPU to the second
    local : Mapping[str, LocalPath]
        as in :class:`~clustersim.topology.topology.Topology`, by the node's own rows
    tier_bytes : Mapping[str, int]
        [B]
    notes : tuple[str, ...]
        what was assumed
    multicast : bool
        whether the switches between its GPUs add up and copy what they pass
    """

    gpus: tuple[GPU, ...]
    gpu_of: NDArray[np.int64]
    cpus: tuple[CPU, ...]
    cpu_of: NDArray[np.int64]
    blocks: tuple[Block, ...]
    between: NDArray[np.int64]
    outward: NDArray[np.int64]
    inward: NDArray[np.int64]
    local: Mapping[str, LocalPath]
    tier_bytes: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    multicast: bool = False

    @property
    def num_gpus(self) -> int:
        """Number of GPUs in the node."""
        return len(self.gpu_of)


class Layout:
    """A node's resources while a builder lays them out: gives each new one its row.

    Attributes
    ----------
    blocks : list[Block]
        those laid out so far
    """

    __slots__ = ("_count", "blocks")

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._count = 0

    def add(
        self,
        kind: str,
        label: str,
        *shape: int,
        capacity: float,
        latency: float = 0.0,
        num_links: int = 1,
        uneven: bool = False,
    ) -> NDArray[np.int64]:
        """Lay out equal resources and return their rows, shape ``shape``; see :class:`Block` for the parameters."""
        block = Block(
            kind=kind,
            shape=shape,
            capacity=capacity,
            latency=latency,
            label=label,
            num_links=num_links,
            uneven=uneven,
        )
        self.blocks.append(block)
        rows = np.arange(self._count, self._count + block.count, dtype=np.int64).reshape(shape)
        self._count += block.count
        return rows


def pad(paths: Sequence[Rows]) -> NDArray[np.int64]:
    """Paths of unequal length as one array, shape (len(paths), longest), padded with -1."""
    longest = max((len(path) for path in paths), default=0)
    rows = np.full((len(paths), longest), -1, dtype=np.int64)
    for i, path in enumerate(paths):
        rows[i, : len(path)] = path
    return rows


def square(paths: Sequence[Sequence[Rows]]) -> NDArray[np.int64]:
    """Paths between GPUs, ``paths[a][b]``, as an array of shape (num_gpus, num_gpus, longest), padded with -1."""
    flat = pad([path for row in paths for path in row])
    return flat.reshape(len(paths), len(paths), -1)
