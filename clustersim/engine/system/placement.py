"""Which device each rank of a job is on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.topology.topology import Topology
from clustersim.workload.job import Job

__all__ = ["devices_of", "stacked_groups"]


def devices_of(job: Job, topology: Topology) -> NDArray[np.int64]:
    """Device of each rank: those that the job names, else the first ones; shape (num_ranks,).

    Raises
    ------
    BadInput
        when there are fewer devices than ranks, or the job names none, or one that does not exist, for a rank
    """
    last = topology.num_devices - 1
    if job.devices is None:
        if job.num_ranks > topology.num_devices:
            rule = f"must be at most the {topology.num_devices} devices of {topology.name}"
            raise BadInput([Fault(key=f"{job.name}.num_ranks", value=job.num_ranks, rule=rule, nearest=last + 1)])
        return np.arange(job.num_ranks, dtype=np.int64)
    devices = np.asarray(job.devices, dtype=np.int64)
    if devices.shape != (job.num_ranks,):
        rule = f"must be one device for each of {job.num_ranks} ranks"
        raise BadInput([Fault(key=f"{job.name}.devices", value=devices.shape, rule=rule, nearest=(job.num_ranks,))])
    unknown = devices[(devices < 0) | (devices > last)]
    if len(unknown):
        rule = f"must be a device of {topology.name}, 0 to {last}"
        nearest = min(max(int(unknown[0]), 0), last)
        raise BadInput([Fault(key=f"{job.name}.devices", value=int(unknown[0]), rule=rule, nearest=nearest)])
    return devices


def stacked_groups(job: Job, device: NDArray[np.int64]) -> Iterator[Fault]:
    """Faults of groups with two members on one device: there is no way between them."""
    if len(np.unique(device)) == len(device):
        return
    for family in job.families:
        placed = np.sort(device[family.members], axis=1)
        groups = np.flatnonzero((placed[:, 1:] == placed[:, :-1]).any(axis=1))
        if len(groups):
            rule = "is a group with two members on one device"
            yield Fault(key=f"{job.name}.families.{family.name}", value=int(groups[0]), rule=rule)
