"""What keeps jobs from being laid on a topology, all of it at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from clustersim.collective.bound import KINDS
from clustersim.collective.select import pin
from clustersim.collective.traffic import Algorithm
from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.topology.topology import Topology
from clustersim.workload.check import check
from clustersim.workload.job import Job
from clustersim.workload.program import Program

__all__ = ["refusals"]


def refusals(
    topology: Topology,
    jobs: Sequence[Job],
    slow_ranks: Sequence[Mapping[int, float]],
    algorithms: Mapping[str, str | Algorithm],
) -> Iterator[Fault]:
    """Faults of jobs, of what makes their ranks slow and of the algorithms asked for.

    Parameters
    ----------
    slow_ranks : Sequence[Mapping[int, float]]
        per job: rank -> factor on its compute time
    algorithms : Mapping[str, str | Algorithm]
        by kind of collective
    """
    yield from _algorithm_faults(algorithms)
    for job in jobs:
        yield from check(job, short=False)
    for job in jobs:
        yield from _tier_faults(job, topology)
    for job, slow in zip(jobs, slow_ranks, strict=True):
        yield from _slow_rank_faults(job, slow)


def _algorithm_faults(algorithms: Mapping[str, str | Algorithm]) -> Iterator[Fault]:
    for kind, algorithm in algorithms.items():
        if kind not in KINDS:
            rule = f"is not a collective: {', '.join(KINDS)}"
            yield Fault(key="algorithms", value=kind, rule=rule, nearest=nearest_name(kind, KINDS))
        try:
            pin(algorithm)
        except BadInput as error:
            yield from (replace(fault, key=f"algorithms.{kind}") for fault in error.faults)


def _slow_rank_faults(job: Job, slow: Mapping[int, float]) -> Iterator[Fault]:
    last = job.num_ranks - 1
    for rank, factor in slow.items():
        if not 0 <= rank <= last:
            rule = f"must be a rank of {job.name}, 0 to {last}"
            yield Fault(key="perturb.slow_ranks", value=rank, rule=rule, nearest=min(max(rank, 0), last))
        elif not 0 < factor < float("inf"):
            yield Fault(key=f"perturb.slow_ranks.{rank}", value=factor, rule="must be positive and finite")


_STORES = {"nvme": ("nvme_write", "its nodes have no drives"), "file_system": ("fs_write", "it has no storage")}
"""Tiers that not every cluster has, the path that leads there, and what lacks."""


def _tier_faults(job: Job, topology: Topology) -> Iterator[Fault]:
    """Bytes that programs hold where there is nothing to hold them: each tier once, by the first program with some."""
    held = {key.partition("/")[0]: p.name for p in reversed(job.programs) for key in _memory_keys(p)}
    for tier, (path, lacks) in _STORES.items():
        if tier in held and tier not in topology.tier_bytes and path not in topology.local:
            rule = f"is no tier of {topology.name}: {lacks}"
            yield Fault(key=f"{job.name}.{held[tier]}", value=tier, rule=rule, nearest="host_pinned")


def _memory_keys(program: Program) -> tuple[str, ...]:
    arrays = program.arrays()
    return (*arrays.resident, *arrays.memory_keys)
