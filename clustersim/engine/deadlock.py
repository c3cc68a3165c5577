"""When nothing can happen and ops remain: who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clustersim.engine.loop.lane import Lane
from clustersim.workload.op import Collective

if TYPE_CHECKING:
    from clustersim.engine.engine import Engine
    from clustersim.trace.result import Result

__all__ = ["Deadlock", "wait_for"]


class Deadlock(RuntimeError):  # noqa: N818 - what happened, not a fault
    """Ops remain that nothing can start.

    Attributes
    ----------
    chain : tuple[str, ...]
        one line an op: rank, op, group, and what it waits for; the last line closes the cycle or names what never comes
    result : Result, optional
        what ran until then
    """

    result: Result | None = None

    def __init__(self, chain: list[str]) -> None:
        self.chain = tuple(chain)
        super().__init__("no op can start:\n  " + "\n  ".join(chain))


def wait_for(engine: Engine) -> list[str]:
    """The wait-for chain from the first op that has not ended to the cycle or the missing op; empty when all ended."""
    at = _first_blocked(engine)
    seen: dict[tuple[Lane, int], int] = {}
    chain: list[str] = []
    while at is not None:
        if at in seen:
            chain.append(f"which closes the cycle of {len(chain) - seen[at]}")
            break
        seen[at] = len(chain)
        line, at = _why(engine, *at)
        chain.append(line)
    return chain


def _first_blocked(engine: Engine) -> tuple[Lane, int] | None:
    for lane in engine.lanes:
        if lane.spec.job in engine.launched and lane not in engine.cancelled:
            blocked = np.flatnonzero(np.frombuffer(lane.end, dtype=np.int64) < 0)
            if len(blocked):
                return lane, int(blocked[0])
    return None


def _why(engine: Engine, lane: Lane, i: int) -> tuple[str, tuple[Lane, int] | None]:
    """What op ``i`` waits for, in words and as the next op of the chain."""
    before = [int(b) for b in lane.flat.edges[lane.flat.edges[:, 1] == i, 0] if lane.end[int(b)] < 0]
    if before:
        return f"{_named(engine, lane, i)} waits for {_named(engine, lane, before[0])}", (lane, before[0])
    if lane.start[i] >= 0:
        return f"{_named(engine, lane, i)} has started and never ends: {_held_by(engine, lane, i)}", None
    if (lane, i) in engine.stores.needs:
        return _why_pooled(engine, lane, i)
    if lane.slot[i] >= 0:
        meeting, k = lane.rendezvous[lane.flat.slot[i]], lane.flat.sequence[i]
        for other, ops in meeting.members:
            if k >= len(ops):
                return (
                    f"{_named(engine, lane, i)} waits in {meeting.spec.name} for {_rank(engine, other)}, "
                    f"whose program has no collective number {k} there"
                ), None
            if other.waits[ops[k]] or (other is not lane and not _arrived(engine, other, ops[k])):
                return (
                    f"{_named(engine, lane, i)} waits in {meeting.spec.name} for {_named(engine, other, ops[k])}",
                    (other, ops[k]),
                )
    return f"{_named(engine, lane, i)} is ready and was never started", None


def _held_by(engine: Engine, lane: Lane, i: int) -> str:
    """The resource that gives an op in progress nothing."""
    joint = lane.slot[i] >= 0
    op = (lane.rendezvous[lane.slot[i]], lane.sequence[i]) if joint else (lane, i)
    limit = next(activity.limit for activity in engine.calendar.stuck if (activity.owner, activity.number) == op)
    return f"{engine.scene.system.topology.resources.name(engine.scene.row[limit])} has no bandwidth left for it"


def _why_pooled(engine: Engine, lane: Lane, i: int) -> tuple[str, tuple[Lane, int] | None]:
    """Which pool is short, and who would give back to it: one that holds some of it rather than one that waits too."""
    stores = engine.stores
    for pool, amount in lane.flat.pooled[i]:
        store = lane.stores[pool][0]
        if stores.available[store] >= amount:
            continue
        capacity = engine.scene.system.jobs[lane.spec.job].pools[pool].capacity
        line = (
            f"{_named(engine, lane, i)} waits for {amount} of {pool}, {stores.available[store]} of {capacity} are free"
        )
        givers = [
            (_held(other, pool) <= 0, number, j)
            for number, other in enumerate(engine.lanes)
            if other.stores.get(pool, (-1, 0))[0] == store and other.spec.job == lane.spec.job
            for j, amounts in other.flat.giving.items()
            if other.end[j] < 0 and (other, j) != (lane, i) and pool in dict(amounts)
        ]
        if not givers:
            return f"{line}, and no op will give any back", None
        _, number, j = min(givers)
        return f"{line}, and {_named(engine, engine.lanes[number], j)} would give some back", (engine.lanes[number], j)
    # enough of everything: an earlier request heads a line
    pool, (_, _, j, ahead) = next(
        (pool, stores.lines[lane.stores[pool][0]][0])
        for pool, _ in lane.flat.pooled[i]
        if stores.lines[lane.stores[pool][0]][0][2:] != (i, lane)
    )
    return f"{_named(engine, lane, i)} waits in the line for {pool} behind {_named(engine, ahead, j)}", (ahead, j)


def _held(lane: Lane, pool: str) -> int:
    """Units of a pool that a lane has taken and not given back."""
    taken = sum(amount for j, a in lane.flat.pooled.items() for p, amount in a if p == pool and lane.start[j] >= 0)
    given = sum(amount for j, a in lane.flat.giving.items() for p, amount in a if p == pool and lane.end[j] >= 0)
    return taken - given


def _arrived(engine: Engine, lane: Lane, i: int) -> bool:
    edges = lane.flat.edges
    return lane.spec.job in engine.launched and all(lane.end[int(b)] >= 0 for b in edges[edges[:, 1] == i, 0])


def _named(engine: Engine, lane: Lane, i: int) -> str:
    op = lane.flat.arrays.ops[lane.op[i]]
    group = f" ({op.kind} on {op.slot})" if isinstance(op, Collective) else ""
    return f"{_rank(engine, lane)} op {i % max(1, len(lane.flat.arrays))} '{op.name}'{group}"


def _rank(engine: Engine, lane: Lane) -> str:
    job = engine.scene.system.jobs[lane.spec.job].name
    rank = lane.spec.rank - int(engine.scene.system.first_rank[lane.spec.job])
    return f"rank {rank}" if len(engine.scene.system.jobs) == 1 else f"rank {rank} of {job}"
