"""At which rates a node reads and writes the kinds of drive that it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clustersim.topology.topology import Topology

__all__ = ["DriveRates", "drive_rates"]

_PATHS = {"nvme": ("nvme_read", "nvme_write"), "file_system": ("fs_read", "fs_write")}


@dataclass(frozen=True, kw_only=True, slots=True)
class DriveRates:
    """One kind of drive as a node reaches it.

    Parameters
    ----------
    read, write : float
        [B/s]
    half_duplex : bool
        it reads or writes; else both at once
    """

    read: float
    write: float
    half_duplex: bool

    @property
    def per_byte(self) -> float:
        """Time to read and write a byte, many of them behind each other [s]."""
        each = 1 / self.read, 1 / self.write
        return sum(each) if self.half_duplex else max(each)


def drive_rates(topology: Topology) -> dict[str, DriveRates]:
    """Each kind of drive, ``nvme`` or ``file_system``, when all nodes use it; of what they share a node has its part.

    Parameters
    ----------
    topology : Topology
    """
    found = {}
    for drive, (read, write) in _PATHS.items():
        if read in topology.local and write in topology.local:
            (reads, by), (writes, beside) = _busiest(topology, read), _busiest(topology, write)
            found[drive] = DriveRates(read=reads, write=writes, half_duplex=by == beside)
    return found


def _busiest(topology: Topology, name: str) -> tuple[float, int]:
    """Rate of the first node over one path [B/s], and the resource that sets it."""
    path = topology.local[name]
    rates: list[tuple[float, int]] = []
    for row, per_byte in zip(path.rows[0].tolist(), path.per_byte.tolist(), strict=True):
        if row >= 0:
            users = np.unique(topology.node_of[(path.rows == row).any(axis=1)])
            rates.append((float(topology.resources.capacity[row]) / per_byte / len(users), row))
    return min(rates)
