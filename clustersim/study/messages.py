"""What messages between a worker's devices take on a cluster: the estimate that placements are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from clustersim.analysis.summary import summary
from clustersim.engine.simulate import simulate
from clustersim.faults import BadInput, Fault
from clustersim.topology.topology import Topology
from clustersim.workload.graph.estimate import Estimate
from clustersim.workload.job import GroupFamily, Job
from clustersim.workload.op import Collective
from clustersim.workload.program import Program

__all__ = ["estimate_of"]

_SMALL, _LARGE = 2**20, 2**26
"""Messages [B] through which a straight line is drawn."""


def estimate_of(cluster: Topology, *, devices: Sequence[int]) -> Estimate:
    """Bandwidth and latency of the slowest pair among a worker's devices, from simulated messages.

    A message of 1 MiB and one of 64 MiB are sent alone, in each direction; time = latency + bytes / bandwidth goes
    through both. Of pairs with equal GPUs and routes, link by link, one is simulated. The GPU is that of the first
    device.

    Parameters
    ----------
    cluster : Topology
    devices : Sequence[int]
        of one worker, at least 2

    Raises
    ------
    BadInput
        when a device is not there or there twice, or fewer than 2 are given
    """
    last = cluster.num_devices - 1
    faults = [
        Fault(key="devices", value=d, rule=f"must be from 0 to {last}", nearest=min(max(d, 0), last))
        for d in devices
        if not 0 <= d <= last
    ]
    if len(set(devices)) != len(devices) or len(devices) < 2:
        faults.append(Fault(key="devices", value=list(devices), rule="must be at least 2, each once"))
    if faults:
        raise BadInput(faults)
    slowest = max(_one_of_each(cluster, devices), key=lambda pair: _seconds(cluster, pair, _LARGE))
    small, large = (_seconds(cluster, slowest, nbytes) for nbytes in (_SMALL, _LARGE))
    bandwidth = (_LARGE - _SMALL) / (large - small)
    gpu = cluster.gpus[int(cluster.gpu_of[devices[0]])]
    return Estimate(bandwidth=bandwidth, latency=max(0.0, small - _SMALL / bandwidth), gpu=gpu)


def _one_of_each(cluster: Topology, devices: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of devices, in each direction, without those whose message takes what another's does."""
    pairs = list(permutations(devices, 2))
    source, destination = np.array(pairs).T
    resources = cluster.resources
    found: dict[tuple[object, ...], tuple[int, int]] = {}
    for pair, row in zip(pairs, cluster.route(source, destination), strict=True):
        used = row[row >= 0]
        hops = zip(resources.kind[used], resources.capacity[used], resources.latency_ns[used], strict=True)
        same_node = bool(cluster.node_of[pair[0]] == cluster.node_of[pair[1]])
        found.setdefault((*cluster.gpu_of[list(pair)].tolist(), same_node, *hops), pair)
    return list(found.values())


def _seconds(cluster: Topology, pair: tuple[int, int], nbytes: int) -> float:
    """A message alone [s]."""
    programs = (Program("sender"), Program("receiver"))
    for program, kind in zip(programs, ("send", "recv"), strict=True):
        program.add(Collective(name="message", kind=kind, slot=kind, nbytes=nbytes, axis="pp"), stream=kind)
    job = Job(
        name="message",
        programs=programs,
        program_of=np.arange(2),
        families=(GroupFamily(name="pair", members=np.array([[0, 1]]), slots=("send", "recv")),),
        devices=np.array(pair),
    )
    return float(summary(simulate(cluster, job))["step_time_s"])
