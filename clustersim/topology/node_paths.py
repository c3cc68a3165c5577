"""Paths of all devices of a cluster, laid out from those of its nodes when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.topology import LocalPath

__all__ = ["NodePaths"]


class NodePaths(Mapping[str, LocalPath]):
    """A mapping of paths of all devices; most jobs ask for few of them, and a large cluster's take long to lay out.

    Parameters
    ----------
    slots : Mapping[str, LocalPath]
        by the GPUs of one node of each kind, in the rows of one node of each
    slot_of, node_of : NDArray[int64], shape (num_devices,)
        of each device
    base, stride : NDArray[int64]
        row r of a node's own is row ``base[r] + node · stride[r]`` of the cluster
    others : Mapping[str, LocalPath], optional
        paths of all devices that lead elsewhere
    """

    __slots__ = ("_base", "_laid", "_node_of", "_slot_of", "_slots", "_stride")

    def __init__(
        self,
        slots: Mapping[str, LocalPath],
        *,
        slot_of: NDArray[np.int64],
        node_of: NDArray[np.int64],
        base: NDArray[np.int64],
        stride: NDArray[np.int64],
        others: Mapping[str, LocalPath] | None = None,
    ) -> None:
        self._slots = slots
        self._slot_of, self._node_of, self._base, self._stride = slot_of, node_of, base, stride
        self._laid = dict(others or {})

    def __getitem__(self, name: str) -> LocalPath:
        """The path of that name, of all devices."""
        if name not in self._laid:
            path = self._slots[name]
            rows = path.rows[self._slot_of]
            self._laid[name] = replace(path, rows=self._base[rows] + self._node_of[:, None] * self._stride[rows])
        return self._laid[name]

    def __iter__(self) -> Iterator[str]:
        """Names of paths."""
        return iter({**self._slots, **self._laid})

    def __len__(self) -> int:
        return len({**self._slots, **self._laid})

    def __contains__(self, name: object) -> bool:
        """Whether there is a path of that name; nothing is laid out for the answer."""
        return name in self._slots or name in self._laid

    def joined(self, others: Mapping[str, LocalPath]) -> NodePaths:
        """These and others, which stand before those of the same name."""
        return NodePaths(
            self._slots,
            slot_of=self._slot_of,
            node_of=self._node_of,
            base=self._base,
            stride=self._stride,
            others={**self._laid, **others},
        )

    def of(self, devices: NDArray[np.int64]) -> NodePaths:
        """The paths of some devices."""
        return NodePaths(
            self._slots,
            slot_of=self._slot_of[devices],
            node_of=self._node_of[devices],
            base=self._base,
            stride=self._stride,
            others={name: replace(path, rows=path.rows[devices]) for name, path in self._laid.items()},
        )
