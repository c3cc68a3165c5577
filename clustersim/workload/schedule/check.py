"""Proof that a schedule is complete, that it ends, and that messages arrive in the order in which they are sent."""

from __future__ import annotations

from collections import Counter

from clustersim.faults import Fault
from clustersim.workload.schedule.unit import Table, Unit

__all__ = ["check"]

_KEY = "plan.schedule"


def check(table: Table, *, num_stages: int, num_virtual: int, num_micro_batches: int) -> tuple[Fault, ...]:
    """What is wrong with a schedule; empty when it can run.

    A forward needs the forward of the same micro-batch on the virtual stage before it; a backward needs the backward on
    the virtual stage after it and its own forward; a stage does its units in order. Messages between two stages have no
    label: the n-th sent is the n-th received, so the order of sends must be the order of receives.

    Parameters
    ----------
    table : Table
        for each stage its units in order
    num_stages, num_virtual, num_micro_batches : int
        what the table should cover

    Returns
    -------
    tuple[Fault, ...]
        missing, doubled or foreign units by stage; else the units that wait for each other, and pairs of stages
        that disagree on an order
    """
    faults = _completeness(table, num_stages, num_virtual, num_micro_batches)
    return tuple(faults or [*_progress(table, num_virtual), *_order(table, num_virtual)])


def _completeness(table: Table, num_stages: int, num_virtual: int, num_micro_batches: int) -> list[Fault]:
    if len(table) != num_stages:
        return [Fault(key=_KEY, value=f"{len(table)} stages", rule=f"must list the {num_stages} stages of the plan")]
    wanted = {Unit(k, j, c) for k in ("F", "B") for j in range(num_micro_batches) for c in range(num_virtual)}
    faults = []
    for stage, units in enumerate(table):
        counts = Counter(units)
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


def _needs(unit: Unit, stage: int, num_stages: int, num_virtual: int) -> list[tuple[int, Unit]]:
    """(stage, unit) pairs that must have ended before ``unit`` can start on ``stage``."""
    virtual = unit.chunk * num_stages + stage
    last = num_stages * num_virtual - 1
    if unit.kind == "F":
        return [] if virtual == 0 else [_place("F", unit.micro_batch, virtual - 1, num_stages)]
    own = [(stage, Unit("F", unit.micro_batch, unit.chunk))]
    return own if virtual == last else [*own, _place("B", unit.micro_batch, virtual + 1, num_stages)]


def _place(kind: str, micro_batch: int, virtual: int, num_stages: int) -> tuple[int, Unit]:
    return virtual % num_stages, Unit("F" if kind == "F" else "B", micro_batch, virtual // num_stages)


def _progress(table: Table, num_virtual: int) -> list[Fault]:
    """Run the table without durations: whatever cannot be reached waits for itself."""
    num_stages = len(table)
    position = [0] * num_stages
    done: set[tuple[int, Unit]] = set()
    waiting: dict[tuple[int, Unit], list[int]] = {}
    ready = list(range(num_stages))
    while ready:
        stage = ready.pop()
        while position[stage] < len(table[stage]):
            unit = table[stage][position[stage]]
            missing = [n for n in _needs(unit, stage, num_stages, num_virtual) if n not in done]
            if missing:
                waiting.setdefault(missing[0], []).append(stage)
                break
            done.add((stage, unit))
            position[stage] += 1
            ready += waiting.pop((stage, unit), [])
    stuck = [s for s in range(num_stages) if position[s] < len(table[s])]
    if not stuck:
        return []
    waits = []
    for stage in stuck:
        unit = table[stage][position[stage]]
        other, needed = next(n for n in _needs(unit, stage, num_stages, num_virtual) if n not in done)
        waits.append(f"stage {stage} at {unit} waits for {needed} of stage {other}")
    return [Fault(key=_KEY, value="deadlock", rule=f"must end: {'; '.join(waits)}")]


def _order(table: Table, num_virtual: int) -> list[Fault]:
    """Sends of a stage against receives of its neighbour, in both directions."""
    num_stages = len(table)
    last = num_stages * num_virtual - 1
    faults = []
    for kind, step in (("F", 1), ("B", -1)):
        for stage in range(num_stages if num_stages > 1 else 0):
            peer = (stage + step) % num_stages
            sent = [(u.micro_batch, u.chunk * num_stages + stage + step) for u in table[stage] if u.kind == kind]
            received = [(u.micro_batch, u.chunk * num_stages + peer) for u in table[peer] if u.kind == kind]
            # the first virtual stage receives no activation and the last no gradient
            sent = [m for m in sent if 0 <= m[1] <= last]
            received = [m for m in received if m[1] != (0 if kind == "F" else last)]
            if sent != received:
                n = next(i for i, (a, b) in enumerate(zip(sent, received, strict=False)) if a != b)
                rule = (
                    f"message {n} sent is micro-batch {sent[n][0]} for virtual stage {sent[n][1]}, received is "
                    f"{received[n][0]} for {received[n][1]}; must be the same order"
                )
                faults.append(Fault(key=_KEY, value=f"stage {stage} to {peer} ({kind})", rule=rule))
    return faults
