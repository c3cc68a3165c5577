"""Is a job sound? Everything that can be known before the run is said before the run, with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import Fault, nearest_name
from clustersim.workload.arrays import Arrays
from clustersim.workload.job import Job, Pool
from clustersim.workload.program_check import check_program
from clustersim.workload.script import Script, scripts

__all__ = ["check"]


def check(job: Job, *, short: bool = True) -> list[Fault]:
    """All faults of a job; empty when it is sound.

    Looks for ranks without a program, programs that cover different numbers of steps, pools that the job does not have
    or that never hold what is taken at once, bytes in a tier that is none, negative amounts of work, programs with
    cycles, collectives on a slot that a rank has no group for, slots on several streams, ranks that are in two groups
    by one slot, members that disagree on the kind or bytes of a collective, and members that stop short of the others:
    a send without its receive. Orders that deadlock only across ranks show in the run.

    Parameters
    ----------
    job : Job
    short : bool
        whether a member that stops short of the others is a fault here; otherwise the run ends with it as a deadlock
    """
    faults = [fault for program in job.programs for fault in check_program(program)]
    faults += _roles(job)
    faults = faults or _membership(job)
    if not faults:
        for family, of in zip(job.families, scripts(job), strict=True):
            for row in np.flatnonzero((of.code != of.code[:, :1]).any(axis=1))[:3]:
                slots = [family.slot(k) for k in range(family.members.shape[1])]
                mine = [of.scripts[c] for c in of.code[row]]
                if short or not _only_short(mine):
                    faults.append(_disagreement(f"{of.axis}/{family.name}/{row}", family.members[row], slots, mine))
    return faults


def _roles(job: Job) -> Iterator[Fault]:
    """Programs that ranks run, and the pools that programs use, exist."""
    last = len(job.programs) - 1
    unknown = job.program_of[(job.program_of < 0) | (job.program_of > last)]
    if len(unknown):
        nearest = min(max(int(unknown[0]), 0), last)
        rule = f"must be a program, 0 to {last}"
        yield Fault(key=f"{job.name}.program_of", value=int(unknown[0]), rule=rule, nearest=nearest)
    for program in job.programs:
        arrays = program.arrays()
        if len(arrays) and arrays.period != job.period:
            rule = f"must be the {job.period} steps that other programs of {job.name} cover"
            yield Fault(key=f"{program.name}.period", value=arrays.period, rule=rule, nearest=job.period)
        for pool in arrays.pools:
            if pool not in job.pools:
                rule, nearest_pool = f"must be a pool of {job.name}", nearest_name(pool, job.pools)
                yield Fault(key=f"{program.name}.pools", value=pool, rule=rule, nearest=nearest_pool)
        yield from _too_much(program.name, arrays, job.pools)


def _too_much(program: str, arrays: Arrays, pools: Mapping[str, Pool]) -> Iterator[Fault]:
    """Amounts that are more than a whole pool: the first of each pool."""
    told: set[str] = set()
    for op, at, number, amount in arrays.pool_use.tolist():
        pool = arrays.pools[number]
        if at == 0 and pool not in told and pool in pools and amount > pools[pool].capacity:
            told.add(pool)
            capacity = pools[pool].capacity
            rule = f"takes more than the pool has, {capacity}: op {op} ({arrays.ops[arrays.op[op]].name})"
            yield Fault(key=f"{program}.{pool}", value=amount, rule=rule, nearest=capacity)


def _membership(job: Job) -> list[Fault]:
    """Slots and ranks: every slot that a program uses is bound, and bound once."""
    faults = []
    bound: dict[str, NDArray[np.int64]] = {}
    for family in job.families:
        if family.members.size and not 0 <= family.members.min() <= family.members.max() < job.num_ranks:
            faults.append(
                Fault(
                    key=f"{job.name}.families.{family.name}",
                    value=int(family.members.max()),
                    rule=f"must be ranks from 0 to {job.num_ranks - 1}",
                    nearest=job.num_ranks - 1,
                )
            )
            continue
        for position in range(family.members.shape[1]):
            count = bound.setdefault(family.slot(position), np.zeros(job.num_ranks, dtype=np.int64))
            np.add.at(count, family.members[:, position], 1)
    for slot, count in bound.items():
        if (count > 1).any():
            faults.append(
                Fault(
                    key=f"{job.name}.families",
                    value=slot,
                    rule=f"must name one group of rank {int(np.argmax(count > 1))}, not {int(count.max())}",
                )
            )
    for p, program in enumerate(job.programs):
        ranks = np.flatnonzero(job.program_of == p)
        for slot in program.arrays().slots():
            missing = ranks if slot not in bound else ranks[bound[slot][ranks] == 0]
            if len(missing):
                faults.append(
                    Fault(
                        key=f"{program.name}.{slot}",
                        value=slot,
                        nearest=nearest_name(slot, bound),
                        rule=f"must be a group of rank {int(missing[0])}, whose program uses it",
                    )
                )
    return faults


def _only_short(of: list[Script]) -> bool:
    """Whether members agree on every collective that they have in common."""
    longest = max(of, key=len)
    return all(script == longest[: len(script)] for script in of)


def _disagreement(group: str, ranks: NDArray[np.int64], slots: list[str], of: list[Script]) -> Fault:
    """The first collective on which members differ."""
    longest = max(of, key=len)
    for rank, slot, script in zip(ranks.tolist(), slots, of, strict=True):
        for k, (mine, other) in enumerate(zip(script, longest, strict=False)):
            if mine != other:
                return Fault(
                    key=f"group {group}",
                    value=f"rank {rank} {slot}[{k}]: {mine[0]} of {mine[1]} bytes",
                    rule="must be the collective that the other members run",
                    nearest=f"{other[0]} of {other[1]} bytes",
                )
        if len(script) < len(longest):
            kind, nbytes, _ = longest[len(script)]
            return Fault(
                key=f"group {group}",
                value=f"rank {rank} {slot}: {len(script)} collectives",
                rule=f"must be {len(longest)}: others wait there for a {kind} of {nbytes} bytes",
                nearest=len(longest),
            )
    raise AssertionError("members that agree were said to differ")
