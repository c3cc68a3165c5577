"""Proof that a schedule is complete, that it ends, and that messages arrive in the order in which they are sent."""

from __future__ import annotations

from collections import Counter

from clustersim.faults import Fault
from clustersim.workload.schedule.placement import Placement, loop
from clustersim.workload.schedule.progress import Progress
from clustersim.workload.schedule.unit import Table, Unit, units_of

__all__ = ["check"]

_KEY = "plan.schedule"
_Message = tuple[int, int, int]  # micro-batch, stage and chunk that it is for


def check(
    table: Table, *, num_stages: int, num_virtual: int, num_micro_batches: int, placement: Placement | None = None
) -> tuple[Fault, ...]:
    """What is wrong with a schedule; empty when it can run.

    A forward needs the forward of the same micro-batch at the position before it; a backward needs the backward at the
    position after it and its own forward; the backward of the weights needs that of the input; a stage does its units
    in order. Messages between two stages have no label: the n-th activation sent is the n-th received and likewise for
    gradients, so the order of sends must be the order of receives. Chunks of one stage send each other nothing.

    Parameters
    ----------
    table : Table
        for each stage its units in order
    num_stages, num_virtual, num_micro_batches : int
        what the table should cover
    placement : Placement, optional
        where the chunks stand; None: in a loop over the stages

    Returns
    -------
    tuple[Fault, ...]
        missing, doubled or foreign units by stage; else the units that wait for each other, and pairs of stages
        that disagree on an order
    """
    where = placement or loop(num_stages, num_virtual)
    if len(table) != num_stages:
        rule = f"must list the {num_stages} stages of the plan"
        return (Fault(key=_KEY, value=f"{len(table)} stages", rule=rule, nearest=num_stages),)
    faults = _completeness(table, where, num_micro_batches)
    return tuple(faults or [*_progress(table, where), *_order(table, where)])


def _completeness(table: Table, placement: Placement, num_micro_batches: int) -> list[Fault]:
    rows = [Counter(units_of(row)) for row in table]
    routes = _routes(rows, placement, num_micro_batches)
    faults = []
    for stage, counts in enumerate(rows):
        wanted = set()
        for chunk in range(placement.num_virtual):
            route, _ = placement.position(stage, chunk)
            for j in (j for j, taken in enumerate(routes) if taken == route):
                split = Unit("I", j, chunk) in counts or Unit("W", j, chunk) in counts
                wanted |= {Unit(kind, j, chunk) for kind in (("F", "I", "W") if split else ("F", "B"))}
        wrong = {
            "misses": wanted - counts.keys(),
            "repeats": {u for u, n in counts.items() if n > 1},
            "has unknown": counts.keys() - wanted,
        }
        for what, found in wrong.items():
            if found:
                names = ", ".join(sorted(map(str, found))[:5])
                rule = f"{what} {len(found)} units ({names}); must do each micro-batch and chunk once each way"
                faults.append(Fault(key=_KEY, value=f"stage {stage}", rule=rule))
    return faults


def _routes(rows: list[Counter[Unit]], placement: Placement, num_micro_batches: int) -> list[int]:
    """Which route each micro-batch takes: the one on which most of its units stand, of equal ones the first."""
    votes = [[0] * len(placement.routes) for _ in range(num_micro_batches)]
    for stage, counts in enumerate(rows):
        for unit in counts:
            if 0 <= unit.micro_batch < num_micro_batches and 0 <= unit.chunk < placement.num_virtual:
                votes[unit.micro_batch][placement.position(stage, unit.chunk)[0]] += 1
    return [v.index(max(v)) for v in votes]


def _progress(table: Table, placement: Placement) -> list[Fault]:
    """Run the table without durations: whatever cannot be reached waits for itself."""
    progress = Progress(table, placement)
    for _ in progress:
        pass
    waits = [
        f"stage {s} at {entry} waits for {needed} of stage {other}" for s, entry, other, needed in progress.waiting()
    ]
    return [Fault(key=_KEY, value="deadlock", rule=f"must end: {'; '.join(waits)}")] if waits else []


def _order(table: Table, placement: Placement) -> list[Fault]:
    """Sends of each stage against receives of each other, activations and gradients apart."""
    sent: dict[tuple[int, int, str], list[_Message]] = {}
    received: dict[tuple[int, int, str], list[_Message]] = {}
    for stage, row in enumerate(table):
        for unit in units_of(row):
            if unit.kind == "W":
                continue
            way = "F" if unit.kind == "F" else "B"
            behind, ahead = placement.before(stage, unit.chunk), placement.after(stage, unit.chunk)
            source, target = (behind, ahead) if way == "F" else (ahead, behind)
            if target and target[0] != stage:
                sent.setdefault((stage, target[0], way), []).append((unit.micro_batch, *target))
            if source and source[0] != stage:
                received.setdefault((source[0], stage, way), []).append((unit.micro_batch, stage, unit.chunk))
    faults = []
    for (stage, peer, way), messages in sent.items():
        for n, (a, b) in enumerate(zip(messages, received[stage, peer, way], strict=True)):
            if a != b:
                rule = (
                    f"message {n} sent is micro-batch {a[0]} for virtual stage {_virtual(placement, a)}, received is "
                    f"{b[0]} for {_virtual(placement, b)}; must be the same order"
                )
                faults.append(Fault(key=_KEY, value=f"stage {stage} to {peer} ({way})", rule=rule))
                break
    return faults


def _virtual(placement: Placement, message: _Message) -> int:
    return placement.position(*message[1:])[1]
