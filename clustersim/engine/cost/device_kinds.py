"""Kinds of device: ranks of one kind run on equal devices, at equal speed, behind equal paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.cost.paths import gpus_per_socket
from clustersim.engine.factorize import factorize
from clustersim.topology.topology import Topology

__all__ = ["device_kinds"]


def device_kinds(
    topology: Topology, device: NDArray[np.int64], slowdown: NDArray[np.float64], used_paths: Sequence[str]
) -> NDArray[np.int64]:
    """Number the kinds of device that ranks run on: distinct combinations of card, speed and path capacities.

    Parameters
    ----------
    device : NDArray[int64], shape (num_ranks,)
    slowdown : NDArray[float64], shape (num_ranks,)
        factor on what each rank computes
    used_paths : Sequence[str]
        local paths that some op takes

    Returns
    -------
    NDArray[int64], shape (num_ranks,)
    """
    columns = [topology.gpu_of[device], topology.cpu_of[device], slowdown]
    for name in used_paths:
        rows = topology.local[name].rows[device]
        capacity = np.append(topology.resources.capacity, -1)
        columns += [capacity[rows[:, hop]] for hop in range(rows.shape[1])]
    if "cores" in used_paths:
        columns.append(gpus_per_socket(topology)[device])
    return factorize(*columns)
