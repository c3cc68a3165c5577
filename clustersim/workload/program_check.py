"""Is a program sound on its own?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import Fault, nearest_name
from clustersim.hardware.kernel import Kernel
from clustersim.workload.job import TIERS
from clustersim.workload.op import Compute, HostWork, Op
from clustersim.workload.program import Program

__all__ = ["check_program"]

_ROUNDS = 8
"""Times that ops are put in order before they are walked one by one."""


def check_program(program: Program) -> list[Fault]:
    """Faults that one program has on its own."""
    arrays = program.arrays()
    faults = []
    for slot, numbers in arrays.slots().items():
        streams = np.unique(arrays.stream[numbers])
        if len(streams) > 1:
            names = ", ".join(arrays.streams[s] for s in streams)
            faults.append(
                Fault(
                    key=f"{program.name}.{slot}",
                    value=names,
                    nearest=arrays.streams[streams[0]],
                    rule="must be one stream: collectives of a group have one order",
                )
            )
    faults += [fault for op in arrays.ops for fault in _amounts(program.name, op)]
    faults += [
        Fault(key=f"{program.name}.{arrays.pools[pool]}", value=amount, rule="must be at least 1", nearest=1)
        for _, _, pool, amount in arrays.pool_use.tolist()
        if amount < 1
    ]
    for key in dict.fromkeys((*arrays.memory_keys, *arrays.resident)):
        tier, _, category = key.partition("/")
        if tier not in TIERS or not category:
            rule, nearest = f"must be tier/category, of the tiers {', '.join(TIERS)}", nearest_name(tier, TIERS)
            faults.append(Fault(key=f"{program.name}.memory", value=key, rule=rule, nearest=nearest))
    cycle = _cycle(arrays.edges, len(arrays))
    if cycle:
        path = " -> ".join(f"{k} {arrays.ops[arrays.op[k]].name}" for k in cycle)
        faults.append(Fault(key=program.name, value=path, rule="must not be a cycle: these ops wait for each other"))
    return faults


def _amounts(program: str, op: Op) -> Iterator[Fault]:
    """Work that is less than nothing, and nobody to do it."""
    parts: tuple[Op | Kernel, ...] = (op, *op.kernels) if isinstance(op, Compute) else (op,)
    for name in ("flops", "nbytes", "measured_ns", "count", "files"):
        for part in parts:
            amount = getattr(part, name, 0)
            if amount < 0:
                yield Fault(key=f"{program}.{op.name}.{name}", value=amount, rule="must not be negative", nearest=0)
                break
    if isinstance(op, HostWork):
        if not 0 < op.part <= 1:
            yield Fault(key=f"{program}.{op.name}.part", value=op.part, rule="must be above 0 and at most 1", nearest=1)
        if op.threads is not None and op.threads < 1:
            yield Fault(key=f"{program}.{op.name}.threads", value=op.threads, rule="must be at least 1", nearest=1)


def _cycle(edges: NDArray[np.int32], n: int) -> list[int]:
    """Ops of one cycle, in order of waiting; empty when there is none."""
    if _has_order(edges, n):
        return []
    before: list[list[int]] = [[] for _ in range(n)]
    after: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges.tolist():
        before[b].append(a)
        after[a].append(b)
    waits = [len(x) for x in before]
    free = [k for k in range(n) if not waits[k]]
    for k in free:  # grows while it is walked
        for b in after[k]:
            waits[b] -= 1
            if not waits[b]:
                free.append(b)
    at = next((k for k in range(n) if waits[k]), None)
    seen: list[int] = []
    while at is not None and at not in seen:
        seen.append(at)
        at = next(a for a in before[at] if waits[a])
    return [] if at is None else seen[seen.index(at) :]


def _has_order(edges: NDArray[np.int32], n: int) -> bool:
    """Whether an order of the ops is soon found in which each stands behind all that it waits for.

    That of the program is one, but for what was added to it later, such as calls of the host: an op that stands behind
    one that waits for it is put right before the first such. False proves nothing.
    """
    before, after = edges.T.astype(np.int64)
    place, moved = 2 * np.arange(n) + 1, np.zeros(n, dtype=bool)  # 2k: right before op k
    for _ in range(_ROUNDS):
        late = (place[before] > place[after]) | ((place[before] == place[after]) & (before >= after))
        if not late.any():
            return True
        moved[before[late]] = True
        mine = moved[before]
        np.minimum.at(place, before[mine], place[after[mine]] & ~1)
    return False
