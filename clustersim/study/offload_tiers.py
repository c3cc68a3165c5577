"""How to split optimizer state over kinds of drive: by their rates, in closed form, and by search."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustersim.topology.topology import Topology
from clustersim.workload.offload.policy import DRIVES, Drive

__all__ = ["drive_rates"]

_PATHS: Mapping[Drive, tuple[str, str]] = {"nvme": ("nvme_read", "nvme_write"), "file_system": ("fs_read", "fs_write")}


def drive_rates(topology: Topology) -> dict[Drive, tuple[float, float]]:
    """At which a node reads and writes each kind of drive when all nodes do [B/s].

    What nodes share, as the servers of a file system, counts with the node's part.

    Parameters
    ----------
    topology : Topology
    """
    return {
        drive: (_rate(topology, read), _rate(topology, write))
        for drive in DRIVES
        for read, write in [_PATHS[drive]]
        if read in topology.local and write in topology.local
    }


def _rate(topology: Topology, name: str) -> float:
    """Of the first node over one path."""
    path = topology.local[name]
    rates: list[float] = []
    for row, per_byte in zip(path.rows[0], path.per_byte, strict=True):
        if row >= 0:
            users = np.unique(topology.node_of[(path.rows == row).any(axis=1)])
            rates.append(float(topology.resources.capacity[row] / per_byte / len(users)))
    return min(rates)
