"""The system: jobs on a topology as one graph of ranks, groups and resources, in arrays.

Every demand that the engine can ever place is an edge of this graph. Nothing here knows about folding: the full run
and the folded run both start from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.cost.local_cost import LocalCost
from clustersim.engine.cost.paths import paths
from clustersim.engine.role.role import Role
from clustersim.engine.system.group_block import GroupBlock
from clustersim.engine.system.noise import Noise
from clustersim.engine.system.path_edges import PathEdges
from clustersim.engine.system.pool_stores import PoolStores
from clustersim.topology.topology import Topology
from clustersim.workload.arrays import Arrays
from clustersim.workload.job import Job

__all__ = ["System"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class System:
    """Jobs on a topology. R ranks over all jobs, G groups.

    Attributes
    ----------
    topology : Topology
        with all perturbations applied
    jobs : tuple[Job, ...]
    first_rank : NDArray[int64], shape (num_jobs + 1,)
        system-wide number of each job's rank 0
    device : NDArray[int64], shape (R,)
    program_of : NDArray[int64], shape (R,)
        index into ``programs``; equal programs are one, whatever object they came from
    programs : tuple[Arrays, ...]
    kind_of : NDArray[int64], shape (R,)
        ranks of one kind run on equal devices, at equal speed, behind equal paths
    local : Mapping[tuple[int, int], tuple[LocalCost | None, ...]]
        (program, kind) -> cost of each distinct op; None for a collective
    path_edges : list[PathEdges]
    blocks : list[GroupBlock]
    stores : PoolStores
    roles : dict[tuple[int, int], Role]
        those asked for so far
    noise : Noise, optional
        random factors on what ranks compute
    """

    topology: Topology
    jobs: tuple[Job, ...]
    first_rank: NDArray[np.int64]
    device: NDArray[np.int64]
    program_of: NDArray[np.int64]
    programs: tuple[Arrays, ...]
    kind_of: NDArray[np.int64]
    slowdown: NDArray[np.float64]
    local: Mapping[tuple[int, int], tuple[LocalCost | None, ...]]
    path_edges: list[PathEdges]
    blocks: list[GroupBlock]
    stores: PoolStores
    roles: dict[tuple[int, int], Role] = field(default_factory=dict)
    noise: Noise | None = None

    def role(self, program: int, rounds: int) -> Role:
        """A program played ``rounds`` times; the same object each time."""
        if (program, rounds) not in self.roles:
            self.roles[program, rounds] = Role(self.programs[program], rounds)
        return self.roles[program, rounds]

    @property
    def num_ranks(self) -> int:
        """Ranks over all jobs."""
        return int(self.first_rank[-1])

    @property
    def num_groups(self) -> int:
        """Groups over all jobs."""
        return sum(len(block.members) for block in self.blocks)

    def job_of(self, rank: int) -> int:
        """Job that a rank belongs to."""
        return int(np.searchsorted(self.first_rank, rank, side="right")) - 1

    def store_capacity(self) -> list[int]:
        """Of each store of each pool [units]."""
        capacity: list[int] = []
        for (job, pool), (store, _) in self.stores.items():
            capacity += [self.jobs[job].pools[pool].capacity] * (int(store.max()) + 1)
        return capacity

    def num_sms(self, rank: int) -> int:
        """SMs of the rank's device."""
        return self.topology.gpus[int(self.topology.gpu_of[self.device[rank]])].num_sms

    def peak_load(self, program: int, op: int) -> int:
        """Bytes of a distinct op on its busiest path [B], at least 1."""
        return max([1, *(nbytes for _, nbytes in paths(self.programs[program].ops[op]))])

    def group_bound(self, block: int, group: int, signature: int) -> str:
        """What sets the duration of a collective alone: ``latency`` or the name of its busiest resource."""
        cost = self.blocks[block].cost
        ns, latency = int(cost.ns[group, signature]), int(cost.latency_ns[group, signature])
        first, last = np.searchsorted(cost.group, [group, group + 1])
        if 2 * latency >= ns or first == last:
            return "latency"
        rows = cost.row[first:last]
        busiest = np.argmax(cost.load[first:last, signature] / self.topology.resources.capacity[rows])
        return self.topology.resources.name(int(rows[busiest]))
