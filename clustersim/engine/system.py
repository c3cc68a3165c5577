"""The system: jobs on a topology as one graph of ranks, groups and resources, in arrays.

Every demand that the engine can ever place is an edge of this graph. Nothing here knows about folding: the full run
and the folded run both start from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.bound import KINDS
from clustersim.collective.select import ALGORITHMS, resolve
from clustersim.collective.traffic import Algorithm, GroupShape, Traffic
from clustersim.collective.well_formed import require_well_formed
from clustersim.engine.group_cost import GroupCost, group_cost
from clustersim.engine.local import LocalCost, local_cost, path_loads, paths
from clustersim.engine.noise import Noise
from clustersim.engine.role import Role
from clustersim.engine.seating import seatings
from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.kernel import CostModel
from clustersim.topology.meshes import Meshes, meshes
from clustersim.topology.topology import Topology
from clustersim.workload.check import check
from clustersim.workload.job import Job
from clustersim.workload.op import Collective, Op
from clustersim.workload.program import Arrays
from clustersim.workload.script import Script, Signature, scripts

__all__ = ["GroupBlock", "PathEdges", "System", "build"]


@dataclass(kw_only=True, slots=True, eq=False)
class PathEdges:
    """Edges from the ranks of one program to the resources on one hop of one local path.

    Attributes
    ----------
    program : int
        index into ``System.programs``
    path : str
    label : int
        number of (path, hop)
    ranks, rows : NDArray[int64], shape (n,)
        the edges
    loads : NDArray[int64], shape (num_ops,)
        what each distinct op of the program puts on it
    """

    program: int
    path: str
    label: int
    ranks: NDArray[np.int64]
    rows: NDArray[np.int64]
    loads: NDArray[np.int64]


@dataclass(kw_only=True, slots=True, eq=False)
class GroupBlock:
    """Groups of one family that run one script and sit alike on their nodes; n groups of m members.

    Attributes
    ----------
    name : str
        axis/family, as the trace names it
    job : int
    number : NDArray[int64], shape (n,)
        position in the family
    first : int
        system-wide number of the block's first group
    members : NDArray[int64], shape (n, m)
        system-wide ranks
    slots : tuple[str, ...]
        slot of each position
    script : NDArray[int32]
        index into ``signatures`` of the group's collectives, in order
    signatures : tuple[Signature, ...]
        (kind, nbytes, algorithm): one of each kind of collective the groups run
    traffic : tuple[Traffic, ...]
    cost : GroupCost
        durations and demands by signature
    """

    name: str
    job: int
    number: NDArray[np.int64]
    first: int
    members: NDArray[np.int64]
    slots: tuple[str, ...]
    script: NDArray[np.int32]
    signatures: tuple[Signature, ...]
    traffic: tuple[Traffic, ...]
    cost: GroupCost


@dataclass(kw_only=True, slots=True, eq=False)
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
    num_groups : int
    stores : Mapping[tuple[int, str], tuple[NDArray[int64], NDArray[int64]]]
        (job, pool) -> for each rank of the job the number of its store, and its place among the ranks that share it:
        the key that orders grants of one instant
    algorithms : Mapping[str, str | Algorithm]
        of each kind of collective, where its op pins none; the selector's for kinds that are not in it
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
    num_groups: int
    stores: Mapping[tuple[int, str], tuple[NDArray[np.int64], NDArray[np.int64]]]
    algorithms: Mapping[str, str | Algorithm]
    roles: dict[tuple[int, int], Role] = field(default_factory=dict)
    noise: Noise | None = None

    def role(self, program: int, steps: int) -> Role:
        """A program over ``steps`` steps; the same object each time."""
        if (program, steps) not in self.roles:
            self.roles[program, steps] = Role(self.programs[program], steps)
        return self.roles[program, steps]

    @property
    def num_ranks(self) -> int:
        """Ranks over all jobs."""
        return int(self.first_rank[-1])

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


def build(
    topology: Topology,
    jobs: Sequence[Job],
    cost: CostModel,
    slow_ranks: Sequence[Mapping[int, float]],
    algorithms: Mapping[str, str | Algorithm] | None = None,
) -> System:
    """Lay ``jobs`` on ``topology``.

    Parameters
    ----------
    slow_ranks : Sequence[Mapping[int, float]]
        per job: rank -> factor on its compute time
    algorithms : Mapping[str, str | Algorithm], optional
        see :class:`System`

    Raises
    ------
    BadInput
        more ranks than devices, ranks that do not exist, an op whose group or path does not exist, members of a group
        that disagree on its collectives, algorithms or kinds of collectives that do not exist: all of them at once
    """
    algorithms = algorithms or {}
    first_rank = np.concatenate([[0], np.cumsum([job.num_ranks for job in jobs])]).astype(np.int64)
    device = np.concatenate([_devices(job, topology) for job in jobs])
    slowdown = np.ones(len(device))
    faults = [*_algorithm_faults(algorithms), *(fault for job in jobs for fault in check(job, short=False))]
    for j, (job, slow) in enumerate(zip(jobs, slow_ranks, strict=True)):
        for rank, factor in slow.items():
            if not 0 <= rank < job.num_ranks:
                faults.append(
                    Fault(
                        key="perturb.slow_ranks",
                        value=rank,
                        rule=f"must be a rank of {job.name}, 0 to {job.num_ranks - 1}",
                        nearest=min(max(rank, 0), job.num_ranks - 1),
                    )
                )
            elif not 0 < factor < float("inf"):
                faults.append(Fault(key=f"perturb.slow_ranks.{rank}", value=factor, rule="must be positive and finite"))
            else:
                slowdown[first_rank[j] + rank] = factor
    if faults:
        raise BadInput(faults)
    digests: dict[bytes, int] = {}
    programs: list[Arrays] = []
    program_of = np.empty(len(device), dtype=np.int64)
    for j, job in enumerate(jobs):
        index = []
        for program in job.programs:
            arrays = program.arrays()
            if arrays.digest not in digests:
                digests[arrays.digest] = len(programs)
                programs.append(arrays)
            index.append(digests[arrays.digest])
        program_of[first_rank[j] : first_rank[j + 1]] = np.array(index, dtype=np.int64)[job.program_of]
    used_paths = sorted({name for p in programs for op in p.ops for name, _ in paths(op) if name in topology.local})
    kind_of = _kinds(topology, device, slowdown, used_paths)
    local = _local_costs(topology, programs, program_of, kind_of, device, slowdown, cost)
    system = System(
        topology=topology,
        jobs=tuple(jobs),
        first_rank=first_rank,
        device=device,
        program_of=program_of,
        programs=tuple(programs),
        kind_of=kind_of,
        slowdown=slowdown,
        local=local,
        path_edges=_path_edges(topology, programs, program_of, device),
        blocks=[],
        num_groups=0,
        stores=_stores(topology, jobs, first_rank, device),
        algorithms=algorithms,
    )
    direct = meshes(topology)
    for j, job in enumerate(jobs):
        _add_groups(system, j, job, direct)
    return system


def _algorithm_faults(algorithms: Mapping[str, str | Algorithm]) -> Iterator[Fault]:
    for kind, algorithm in algorithms.items():
        if kind not in KINDS:
            rule = f"is not a collective: {', '.join(KINDS)}"
            yield Fault(key="algorithms", value=kind, rule=rule, nearest=nearest_name(kind, KINDS))
        if not callable(algorithm) and algorithm not in ALGORITHMS:
            rule = f"is not an algorithm: {', '.join(ALGORITHMS)}, or a callable (kind, nbytes, shape) -> Traffic"
            nearest = nearest_name(str(algorithm), ALGORITHMS)
            yield Fault(key=f"algorithms.{kind}", value=algorithm, rule=rule, nearest=nearest)


def _devices(job: Job, topology: Topology) -> NDArray[np.int64]:
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


def _kinds(
    topology: Topology, device: NDArray[np.int64], slowdown: NDArray[np.float64], used_paths: Sequence[str]
) -> NDArray[np.int64]:
    """Number the distinct combinations of card, speed and path capacities; columns that are constant cost nothing."""
    columns = [topology.gpu_of[device], topology.cpu_of[device], slowdown]
    for name in used_paths:
        rows = topology.local[name].rows[device]
        capacity = np.append(topology.resources.capacity, -1)
        columns += [capacity[rows[:, hop]] for hop in range(rows.shape[1])]
    code = np.zeros(len(device), dtype=np.int64)
    for column in columns:
        if len(column) and (column != column[0]).any():
            _, inverse = np.unique(column, return_inverse=True)
            _, code = np.unique(code * (int(inverse.max()) + 1) + inverse, return_inverse=True)
    return code.astype(np.int64)


def _local_costs(
    topology: Topology,
    programs: Sequence[Arrays],
    program_of: NDArray[np.int64],
    kind_of: NDArray[np.int64],
    device: NDArray[np.int64],
    slowdown: NDArray[np.float64],
    cost: CostModel,
) -> dict[tuple[int, int], tuple[LocalCost | None, ...]]:
    num_kinds = int(kind_of.max()) + 1 if len(kind_of) else 0
    pairs, examples = np.unique(program_of * max(num_kinds, 1) + kind_of, return_index=True)
    costs: dict[tuple[int, Op], LocalCost] = {}
    table = {}
    for pair, rank in zip(pairs, examples, strict=True):
        program, kind = divmod(int(pair), num_kinds)
        d = int(device[rank])
        gpu, cpu = topology.gpus[topology.gpu_of[d]], topology.cpus[topology.cpu_of[d]]
        row: list[LocalCost | None] = []
        for op in programs[program].ops:
            if isinstance(op, Collective):
                row.append(None)
                continue
            if (kind, op) not in costs:  # stages share most of their ops
                costs[kind, op] = local_cost(op, gpu, cpu, d, topology, cost, float(slowdown[rank]))
            row.append(costs[kind, op])
        table[program, kind] = tuple(row)
    return table


def _path_edges(
    topology: Topology, programs: Sequence[Arrays], program_of: NDArray[np.int64], device: NDArray[np.int64]
) -> list[PathEdges]:
    edges = []
    labels: dict[tuple[str, int], int] = {}
    for p, arrays in enumerate(programs):
        ranks = np.flatnonzero(program_of == p)
        for name in sorted({name for op in arrays.ops for name, _ in paths(op)}):
            if name not in topology.local:
                continue  # a GPU without a memory resource simply does not share it
            path = topology.local[name]
            for hop, per_byte in enumerate(path.per_byte):
                rows = path.rows[device[ranks], hop]
                here = rows >= 0
                if here.any():
                    label = labels.setdefault((name, hop), len(labels))
                    loads = path_loads(arrays.ops, name, float(per_byte))
                    edges.append(
                        PathEdges(program=p, path=name, label=label, ranks=ranks[here], rows=rows[here], loads=loads)
                    )
    return edges


def _stores(
    topology: Topology, jobs: Sequence[Job], first_rank: NDArray[np.int64], device: NDArray[np.int64]
) -> dict[tuple[int, str], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    stores: dict[tuple[int, str], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    for j, job in enumerate(jobs):
        mine = device[first_rank[j] : first_rank[j + 1]]
        for name, pool in job.pools.items():
            by_scope = {
                "rank": np.arange(len(mine)),
                "node": topology.node_of[mine],
                "job": np.zeros(len(mine), np.int64),
            }
            of = np.unique(by_scope[pool.scope], return_inverse=True)[1].reshape(-1).astype(np.int64)
            stores[j, name] = of, _place_within(of)
    return stores


def _place_within(store: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position of each rank among those that share its store, by rank number."""
    order = np.argsort(store, kind="stable")
    ordered = store[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    place = np.empty(len(store), dtype=np.int64)
    place[order] = np.arange(len(store)) - np.repeat(starts, np.diff(np.append(starts, len(store))))
    return place


def _add_groups(system: System, j: int, job: Job, direct: Meshes | None) -> None:
    """Append the blocks of one job's groups to the system."""
    base = int(system.first_rank[j])
    for family, of in zip(job.families, scripts(job), strict=True):
        members = family.members + base
        slots = tuple(family.slot(i) for i in range(members.shape[1]))
        # a member that stops short of the others is a deadlock of the run, which names it: the longest script counts
        length = np.array([len(script) for script in of.scripts])
        chosen = of.code[np.arange(len(of.code)), np.argmax(length[of.code], axis=1)]
        shapes, seat = seatings(system.topology, direct, system.device[members])
        for code in np.unique(chosen):
            for s in np.unique(seat[chosen == code]) if of.scripts[code] else ():
                rows = np.flatnonzero((chosen == code) & (seat == s))
                name = f"{of.axis}/{family.name}"
                block = _block(system, j, name, rows, members[rows], slots, of.scripts[code], shapes[s])
                system.blocks.append(block)
                system.num_groups += len(rows)


def _block(
    system: System,
    j: int,
    name: str,
    rows: NDArray[np.int64],
    members: NDArray[np.int64],
    slots: tuple[str, ...],
    script: Script,
    shape: GroupShape,
) -> GroupBlock:
    signatures = tuple(dict.fromkeys(script))
    traffic = []
    for kind, nbytes, algorithm in signatures:
        chosen, _ = resolve(algorithm or system.algorithms.get(kind), kind, nbytes, shape)
        traffic.append(require_well_formed(chosen(kind, nbytes, shape), kind, shape.num_members))
    index = {signature: k for k, signature in enumerate(signatures)}
    return GroupBlock(
        name=name,
        job=j,
        number=rows,
        first=system.num_groups,
        members=members,
        slots=slots,
        script=np.array([index[s] for s in script], dtype=np.int32),
        signatures=signatures,
        traffic=tuple(traffic),
        cost=group_cost(system.topology, system.device[members], tuple(traffic)),
    )
