"""The process groups of jobs, and how each of their collectives runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.choose import Call, Choice, choose
from clustersim.collective.overlap import Overlap
from clustersim.collective.seating import seatings
from clustersim.collective.select import options, pin
from clustersim.collective.traffic import Algorithm, GroupShape
from clustersim.engine.system.exchange import option
from clustersim.engine.system.group_block import GroupBlock
from clustersim.engine.system.reduction_slots import ReductionSlots
from clustersim.topology.meshes import meshes
from clustersim.topology.topology import Topology
from clustersim.workload.exchange import Exchange
from clustersim.workload.job import Job
from clustersim.workload.script import FamilyScripts, Script, Signature, scripts

__all__ = ["group_blocks"]


def group_blocks(
    topology: Topology,
    jobs: Sequence[Job],
    first_rank: NDArray[np.int64],
    device: NDArray[np.int64],
    algorithms: Mapping[str, str | Algorithm],
    overlap: Overlap,
) -> list[GroupBlock]:
    """Cut each family of groups into blocks of those that run one script and sit alike.

    Parameters
    ----------
    first_rank, device : NDArray[int64]
        as :class:`~clustersim.engine.system.system.System` has them
    algorithms : Mapping[str, str | Algorithm]
        by kind of collective, for ops that pin none
    overlap : Overlap
        factors on what collectives take from the kernels beside them
    """
    direct = meshes(topology)
    library = _Library(topology, algorithms, overlap, ReductionSlots(topology))
    blocks: list[GroupBlock] = []
    num_groups = 0
    for j, job in enumerate(jobs):
        for family, of in zip(job.families, scripts(job), strict=True):
            members = family.members + int(first_rank[j])
            shapes, seat = seatings(topology, direct, device[members])
            for script, s, rows in _alike(of, seat):
                signatures = tuple(dict.fromkeys(script))
                number_of = {signature: k for k, signature in enumerate(signatures)}
                choice = library.choose(signatures, device[members[rows]], shapes[s])
                blocks.append(
                    GroupBlock(
                        name=f"{of.axis}/{family.name}",
                        job=j,
                        number=rows,
                        first=num_groups,
                        members=members[rows],
                        slots=tuple(family.slot(i) for i in range(members.shape[1])),
                        script=np.array([number_of[signature] for signature in script], dtype=np.int32),
                        signatures=signatures,
                        traffic=choice.traffic,
                        cost=choice.cost,
                        reasons=choice.reasons,
                    )
                )
                num_groups += len(rows)
    return blocks


def _alike(of: FamilyScripts, seat: NDArray[np.int64]) -> Iterator[tuple[Script, int, NDArray[np.int64]]]:
    """(script, seat, positions in the family) of the groups that run one script and sit alike."""
    # a member that stops short of the others is a deadlock of the run, which names it: the longest script counts
    length = np.array([len(script) for script in of.scripts])
    chosen = of.code[np.arange(len(of.code)), np.argmax(length[of.code], axis=1)]
    for code in np.unique(chosen):
        for s in np.unique(seat[chosen == code]) if of.scripts[code] else ():
            yield of.scripts[code], int(s), np.flatnonzero((chosen == code) & (seat == s))


@dataclass(frozen=True, slots=True)
class _Library:
    """The communication library of a run: how it sends what groups ask of it."""

    topology: Topology
    algorithms: Mapping[str, str | Algorithm]
    overlap: Overlap
    slots: ReductionSlots

    def choose(self, signatures: Sequence[Signature], devices: NDArray[np.int64], shape: GroupShape) -> Choice:
        """How groups that sit alike run each kind of collective; without switches that have no slot left for them."""
        chosen = choose(self.topology, devices, shape, self._calls(signatures, shape), self.overlap)
        if without := self.slots.take(chosen.cost):
            alone = replace(shape, in_network=False)
            chosen = choose(self.topology, devices, alone, self._calls(signatures, alone), self.overlap)
            chosen = replace(chosen, reasons=tuple(f"{reason}; {without}" for reason in chosen.reasons))
        return chosen

    def _calls(self, signatures: Sequence[Signature], shape: GroupShape) -> list[Call]:
        """What each collective may run as."""
        calls: list[Call] = []
        for kind, nbytes, algorithm in signatures:
            if isinstance(algorithm, Exchange):
                calls.append((kind, nbytes, (option(algorithm),)))
                continue
            pinned = algorithm or self.algorithms.get(kind)
            calls.append((kind, nbytes, options(kind, nbytes, shape) if pinned is None else (pin(pinned),)))
        return calls
