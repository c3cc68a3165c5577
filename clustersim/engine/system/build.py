"""Laying jobs on a topology: what every op takes alone, what it asks of which resource, and who is in which group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.overlap import Overlap
from clustersim.collective.traffic import Algorithm
from clustersim.engine.cost.by_program import local_costs
from clustersim.engine.cost.device_kinds import device_kinds
from clustersim.engine.cost.paths import paths
from clustersim.engine.system.group_blocks import group_blocks
from clustersim.engine.system.noise import Noise
from clustersim.engine.system.path_edges import path_edges
from clustersim.engine.system.placement import devices_of, stacked_groups
from clustersim.engine.system.pool_stores import pool_stores
from clustersim.engine.system.refusals import refusals
from clustersim.engine.system.system import System
from clustersim.faults import BadInput
from clustersim.hardware.kernel import CostModel
from clustersim.topology.topology import Topology
from clustersim.workload.arrays import Arrays
from clustersim.workload.job import Job

__all__ = ["build"]


def build(
    topology: Topology,
    jobs: Sequence[Job],
    cost: CostModel,
    slow_ranks: Sequence[Mapping[int, float]],
    algorithms: Mapping[str, str | Algorithm] | None = None,
    overlap: Overlap | None = None,
    noise: Noise | None = None,
) -> System:
    """Lay ``jobs`` on ``topology``.

    Parameters
    ----------
    slow_ranks : Sequence[Mapping[int, float]]
        per job: rank -> factor on its compute time
    algorithms : Mapping[str, str | Algorithm], optional
        of each kind of collective, where its op pins none; the selector's for kinds that are not in it
    overlap : Overlap, optional
        factors on what collectives take from the kernels beside them
    noise : Noise, optional
        random factors on what ranks compute

    Raises
    ------
    BadInput
        more ranks than devices, ranks that do not exist, an op whose group or path does not exist, members of a group
        that disagree on its collectives or share a device, bytes on a tier that the cluster has not, algorithms or
        kinds of collectives that do not exist: all of them at once
    """
    algorithms = algorithms or {}
    first_rank = np.concatenate([[0], np.cumsum([job.num_ranks for job in jobs])]).astype(np.int64)
    device_of = [devices_of(job, topology) for job in jobs]
    faults = list(refusals(topology, jobs, slow_ranks, algorithms))
    if not faults:
        faults = [f for job, devices in zip(jobs, device_of, strict=True) for f in stacked_groups(job, devices)]
    if faults:
        raise BadInput(faults)
    device = np.concatenate(device_of)
    slowdown = np.ones(len(device))
    for first, slow in zip(first_rank.tolist(), slow_ranks, strict=False):
        for rank, factor in slow.items():
            slowdown[first + rank] = factor
    programs, program_of = _programs(jobs)
    used_paths = sorted({name for p in programs for op in p.ops for name, _ in paths(op) if name in topology.local})
    kind_of = device_kinds(topology, device, slowdown, used_paths)
    local = local_costs(topology, programs, program_of, kind_of, device, slowdown, cost)
    return System(
        topology=topology,
        jobs=tuple(jobs),
        first_rank=first_rank,
        device=device,
        program_of=program_of,
        programs=programs,
        kind_of=kind_of,
        slowdown=slowdown,
        local=local,
        path_edges=path_edges(topology, local, program_of, kind_of, device),
        blocks=group_blocks(topology, jobs, first_rank, device, algorithms, overlap or Overlap()),
        stores=pool_stores(topology, jobs, first_rank, device),
        noise=noise,
    )


def _programs(jobs: Sequence[Job]) -> tuple[tuple[Arrays, ...], NDArray[np.int64]]:
    """The distinct programs of all jobs, and the one of each rank; equal ones are one, whatever object they are."""
    numbers: dict[bytes, int] = {}
    programs: list[Arrays] = []
    program_of = []
    for job in jobs:
        of_job = []
        for program in job.programs:
            arrays = program.arrays()
            if arrays.digest not in numbers:
                numbers[arrays.digest] = len(programs)
                programs.append(arrays)
            of_job.append(numbers[arrays.digest])
        program_of.append(np.array(of_job, dtype=np.int64)[job.program_of])
    return tuple(programs), np.concatenate(program_of)
