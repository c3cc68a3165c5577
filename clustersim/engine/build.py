"""Laying jobs on a topology: what every op takes alone, what it asks of which resource, and who is in which group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.bound import KINDS
from clustersim.collective.choose import Call, choose
from clustersim.collective.overlap import Overlap
from clustersim.collective.seating import seatings
from clustersim.collective.select import options, pin
from clustersim.collective.traffic import Algorithm, GroupShape
from clustersim.engine.clock import within_power
from clustersim.engine.exchange import option
from clustersim.engine.local import LocalCost, gpus_per_socket, local_cost, path_loads, paths
from clustersim.engine.reduction_slots import ReductionSlots
from clustersim.engine.system import GroupBlock, PathEdges, System
from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.kernel import CostModel
from clustersim.topology.meshes import Meshes, meshes
from clustersim.topology.topology import Topology
from clustersim.workload.arrays import Arrays
from clustersim.workload.check import check
from clustersim.workload.exchange import Exchange
from clustersim.workload.job import Job
from clustersim.workload.op import Collective, Op
from clustersim.workload.program import Program
from clustersim.workload.script import Script, Signature, scripts

__all__ = ["build"]


def build(
    topology: Topology,
    jobs: Sequence[Job],
    cost: CostModel,
    slow_ranks: Sequence[Mapping[int, float]],
    algorithms: Mapping[str, str | Algorithm] | None = None,
    overlap: Overlap | None = None,
) -> System:
    """Lay ``jobs`` on ``topology``.

    Parameters
    ----------
    slow_ranks : Sequence[Mapping[int, float]]
        per job: rank -> factor on its compute time
    algorithms : Mapping[str, str | Algorithm], optional
        see :class:`System`
    overlap : Overlap, optional
        factors on what collectives take from the kernels beside them

    Raises
    ------
    BadInput
        more ranks than devices, ranks that do not exist, an op whose group or path does not exist, members of a group
        that disagree on its collectives or share a device, bytes on a tier that the cluster has not, algorithms or
        kinds of collectives that do not exist: all of them at once
    """
    algorithms = algorithms or {}
    first_rank = np.concatenate([[0], np.cumsum([job.num_ranks for job in jobs])]).astype(np.int64)
    device = np.concatenate([_devices(job, topology) for job in jobs])
    slowdown = np.ones(len(device))
    faults = [*_algorithm_faults(algorithms), *(fault for job in jobs for fault in check(job, short=False))]
    faults += [fault for job in jobs for fault in _tier_faults(job, topology)]
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
    if not faults:
        faults += [f for j, job in enumerate(jobs) for f in _stacked(job, device[first_rank[j] : first_rank[j + 1]])]
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
        path_edges=_path_edges(topology, local, program_of, kind_of, device),
        blocks=[],
        num_groups=0,
        stores=_stores(topology, jobs, first_rank, device),
        algorithms=algorithms,
        reduction_slots=ReductionSlots(topology),
    )
    direct = meshes(topology)
    for j, job in enumerate(jobs):
        _add_groups(system, j, job, direct, overlap or Overlap())
    return system


def _algorithm_faults(algorithms: Mapping[str, str | Algorithm]) -> Iterator[Fault]:
    for kind, algorithm in algorithms.items():
        if kind not in KINDS:
            rule = f"is not a collective: {', '.join(KINDS)}"
            yield Fault(key="algorithms", value=kind, rule=rule, nearest=nearest_name(kind, KINDS))
        try:
            pin(algorithm)
        except BadInput as error:
            yield from (replace(fault, key=f"algorithms.{kind}") for fault in error.faults)


def _stacked(job: Job, device: NDArray[np.int64]) -> Iterator[Fault]:
    """Groups with two members on one device: there is no way between them."""
    if len(np.unique(device)) == len(device):
        return
    for family in job.families:
        placed = np.sort(device[family.members], axis=1)
        groups = np.flatnonzero((placed[:, 1:] == placed[:, :-1]).any(axis=1))
        if len(groups):
            rule = "is a group with two members on one device"
            yield Fault(key=f"{job.name}.families.{family.name}", value=int(groups[0]), rule=rule)


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
    if "cores" in used_paths:
        columns.append(gpus_per_socket(topology)[device])
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
    costs: dict[tuple[int, float], dict[Op, LocalCost]] = defaultdict(dict)  # stages share most of their ops
    limited, table = within_power(cost), {}
    for pair, rank in zip(pairs, examples, strict=True):
        program, kind = divmod(int(pair), num_kinds)
        d, slower = int(device[rank]), float(slowdown[rank])
        gpu, cpu = topology.gpus[topology.gpu_of[d]], topology.cpus[topology.cpu_of[d]]
        found = costs[kind, slower]
        for op in programs[program].ops:
            if op not in found and not isinstance(op, Collective):
                found[op] = local_cost(op, gpu, cpu, d, topology, limited, slower)
        table[program, kind] = tuple(None if isinstance(op, Collective) else found[op] for op in programs[program].ops)
    return table


def _path_edges(
    topology: Topology,
    local: Mapping[tuple[int, int], Sequence[LocalCost | None]],
    program_of: NDArray[np.int64],
    kind_of: NDArray[np.int64],
    device: NDArray[np.int64],
) -> list[PathEdges]:
    edges = []
    labels: dict[tuple[str, int], int] = {}
    for (p, kind), costs in local.items():
        ranks = np.flatnonzero((program_of == p) & (kind_of == kind))
        for name in sorted({name for cost in costs if cost is not None for name, _ in cost.loads}):
            if name not in topology.local:
                continue  # a GPU without a memory resource simply does not share it
            path = topology.local[name]
            for hop, per_byte in enumerate(path.per_byte):
                rows = path.rows[device[ranks], hop]
                here = rows >= 0
                if here.any():
                    label = labels.setdefault((name, hop), len(labels))
                    loads = path_loads(costs, name, float(per_byte))
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


def _add_groups(system: System, j: int, job: Job, direct: Meshes | None, overlap: Overlap) -> None:
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
                block = _block(system, j, name, rows, members[rows], slots, of.scripts[code], shapes[s], overlap)
                system.blocks.append(block)
                system.num_groups += len(rows)


def _calls(system: System, signatures: Sequence[Signature], shape: GroupShape) -> list[Call]:
    """What each collective may run as."""
    calls: list[Call] = []
    for kind, nbytes, algorithm in signatures:
        if isinstance(algorithm, Exchange):
            calls.append((kind, nbytes, (option(algorithm),)))
            continue
        pinned = algorithm or system.algorithms.get(kind)
        calls.append((kind, nbytes, options(kind, nbytes, shape) if pinned is None else (pin(pinned),)))
    return calls


def _block(
    system: System,
    j: int,
    name: str,
    rows: NDArray[np.int64],
    members: NDArray[np.int64],
    slots: tuple[str, ...],
    script: Script,
    shape: GroupShape,
    overlap: Overlap,
) -> GroupBlock:
    signatures = tuple(dict.fromkeys(script))
    chosen = choose(system.topology, system.device[members], shape, _calls(system, signatures, shape), overlap)
    if without := system.reduction_slots.take(chosen.cost):
        alone = replace(shape, in_network=False)
        chosen = choose(system.topology, system.device[members], alone, _calls(system, signatures, alone), overlap)
        chosen = replace(chosen, reasons=tuple(f"{reason}; {without}" for reason in chosen.reasons))
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
        traffic=chosen.traffic,
        cost=chosen.cost,
        reasons=chosen.reasons,
    )
