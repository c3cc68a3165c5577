"""A topology: devices, directed resources between them, and a route function over arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.topology.resources import ResourceTable

__all__ = ["LocalPath", "Router", "Topology"]

Router = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""(source devices (n,), destination devices (n,)) -> resource rows (n, hops) in order of travel, padded with -1."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LocalPath:
    """What one device's own traffic of one kind crosses: its HBM, its PCIe lanes, its host's DRAM, its drives.

    Parameters
    ----------
    rows : NDArray[int64], shape (num_devices, hops)
        resources crossed, padded with -1
    per_byte : NDArray[float64], shape (hops,)
        demand on each per byte moved: 1 for a link or a memory, nanoseconds for a drive
    latency : float
        before the first byte, beside the resources' own latency [s]
    """

    rows: NDArray[np.int64]
    per_byte: NDArray[np.float64]
    latency: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Topology:
    """A cluster as the engine sees it. Devices are numbered node by node.

    Parameters
    ----------
    name : str
        of the card it came from
    gpus : tuple[GPU, ...]
        the distinct device cards
    gpu_of : NDArray[int64], shape (num_devices,)
        index into ``gpus``
    node_of : NDArray[int64], shape (num_devices,)
    cpus : tuple[CPU, ...]
        the distinct host sockets
    cpu_of : NDArray[int64], shape (num_devices,)
        index into ``cpus`` of the socket that a device hangs on
    resources : ResourceTable
    router : Router
        closed form for the regular families
    local : Mapping[str, LocalPath]
        ``hbm``, ``h2d``, ``d2h``, ``dram``, and ``nvme_read``, ``nvme_write`` where the node has drives
    tier_bytes : Mapping[str, int]
        capacity of one node's tiers beside the GPUs' own memory [B]: ``host``, ``nvme``
    notes : tuple[str, ...]
        what was assumed, for the result's warnings
    sources : Mapping[str, str]
        the parts' sources by dotted name
    """

    name: str
    gpus: tuple[GPU, ...]
    gpu_of: NDArray[np.int64]
    node_of: NDArray[np.int64]
    cpus: tuple[CPU, ...]
    cpu_of: NDArray[np.int64]
    resources: ResourceTable
    router: Router
    local: Mapping[str, LocalPath]
    tier_bytes: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def num_devices(self) -> int:
        """Number of GPUs."""
        return len(self.gpu_of)

    @property
    def num_nodes(self) -> int:
        """Number of nodes (boards that share a host)."""
        return int(self.node_of.max()) + 1 if len(self.node_of) else 0

    def route(self, source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
        """Resources between pairs of devices.

        Parameters
        ----------
        source, destination : NDArray[int64], shape (n,)
            device numbers, pairwise different

        Returns
        -------
        NDArray[int64], shape (n, hops)
            resource rows in order of travel, padded with -1
        """
        return self.router(np.asarray(source, dtype=np.int64), np.asarray(destination, dtype=np.int64))

    def with_capacity(self, factors: Mapping[str, float]) -> Topology:
        """The same cluster with some resources slower or faster.

        Parameters
        ----------
        factors : Mapping[str, float]
            resource name -> factor on its capacity; 0.5 halves it

        Raises
        ------
        KeyError
            when a name is not a resource of this topology
        ValueError
            when a factor is not positive: a link that carries nothing has no schedule
        """
        if not factors:
            return self
        for name, factor in factors.items():
            if not 0 < factor < float("inf"):
                raise ValueError(f"{name}: factor {factor} must be positive and finite")
        rows = np.array([self.resources.find(name) for name in factors], dtype=np.int64)
        scaled = np.maximum(1, np.rint(self.resources.capacity[rows] * np.array(list(factors.values())))).astype(np.int64)
        return replace(self, resources=self.resources.with_capacity(rows, scaled))
