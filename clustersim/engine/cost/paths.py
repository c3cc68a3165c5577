"""Which of the paths around a device an op takes: its memory, links to the host, DRAM, cores, drives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.topology import Topology
from clustersim.workload.op import Collective, Compute, Copy, Delay, HostLaunch, HostWork, Memory, Op, Storage

__all__ = ["gpus_per_socket", "paths"]


def paths(op: Op) -> tuple[tuple[str, int], ...]:
    """(local path, bytes that the op itself moves over it): everything a rank asks of shared resources on its own.

    A copy between GPU and host crosses the host's DRAM by its path and the GPU's own memory besides; a copy within the
    GPU reads and writes it. A copy of memory that is not pinned is also read and written by a thread of the driver.
    What a device is really asked for stands in :attr:`LocalCost.loads`. Work without bytes counts its FLOP.
    """
    match op:
        case Compute():
            return (("hbm", op.nbytes),) if op.nbytes else ()
        case Copy(kind="d2d"):
            return (("hbm", 2 * op.nbytes),)
        case Copy():
            own = ((_placed(op.kind, op.memory), op.nbytes), ("hbm", op.nbytes))
            return (*own, (_placed("dram", op.memory), 2 * op.nbytes), ("cores", 0)) if op.pageable else own
        case Storage():
            return ((f"{op.kind}.direct", op.nbytes), ("hbm", op.nbytes)) if op.direct else ((op.kind, op.nbytes),)
        case HostWork():
            across = () if op.memory == "near" else ((f"socket.{op.memory}", op.nbytes),)
            return ((_placed("dram", op.memory), op.nbytes), *across, ("cores", 0 if op.nbytes else op.flops))
        case Collective() | Delay() | HostLaunch():
            return ()


def _placed(path: str, memory: Memory) -> str:
    return path if memory == "near" else f"{path}.{memory}"


def gpus_per_socket(topology: Topology) -> NDArray[np.int64]:
    """How many devices share each device's socket, shape (num_devices,)."""
    _, socket, count = np.unique(topology.local["dram"].rows[:, 0], return_inverse=True, return_counts=True)
    return count[socket.reshape(-1)].astype(np.int64)
