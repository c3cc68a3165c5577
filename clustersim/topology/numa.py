"""NUMA nodes of a cluster's hosts."""

from __future__ import annotations

import numpy as np

from clustersim.topology.topology import Topology

__all__ = ["cpu_numa_nodes"]


def cpu_numa_nodes(topology: Topology) -> int:
    """NUMA nodes with cores in one node, in that with most of them.

    Only sockets that a GPU hangs on are known by their card. The memory of a superchip's GPU is a NUMA node to its
    operating system too, one without cores: those are not counted.
    """
    sockets, first = np.unique(topology.local["dram"].rows[:, 0], return_index=True)
    each = np.array([cpu.num_numa_nodes for cpu in topology.cpus])[topology.cpu_of[first]]
    node = topology.node_of[first]
    return int(np.bincount(node, weights=each[: len(sockets)]).max())
