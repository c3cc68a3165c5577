"""Time steps of a schedule: which units stages do beside each other, and when what they make is sent."""

from __future__ import annotations

from collections.abc import Sequence

from clustersim.workload.schedule.unit import Table, Unit

__all__ = ["posts", "time_steps"]


def time_steps(table: Table) -> list[list[int]]:
    """The time step of each unit of each stage: as soon as its input was made in an earlier step and its turn has come.

    Parameters
    ----------
    table : Table
        of stages whose chunks follow one another round and round
    """
    made: dict[Unit, int] = {}
    found: list[list[int]] = [[] for _ in table]
    step = 0
    while any(len(steps) < len(row) for steps, row in zip(found, table, strict=True)):
        now = []
        for stage, (steps, row) in enumerate(zip(found, table, strict=True)):
            unit = row[len(steps)] if len(steps) < len(row) else None
            if not isinstance(unit, Unit):
                continue
            source = _source(unit, stage, table)
            if source is None or source in made:
                steps.append(step)
                now.append(_at(unit, stage, table))
        made |= dict.fromkeys(now, step)
        if not now:
            raise ValueError(f"table: no stage can go on after time step {step}")
        step += 1
    return found


def posts(table: Table, stage: int) -> dict[int, list[Unit]]:
    """Units of a stage whose messages it receives behind each position of its row, -1 for before the first.

    A message is received in the time step in which it is made, behind the unit of that step, however much later it is
    wanted.

    References
    ----------
    PyTorch, ``torch/distributed/pipelining/schedules.py``, ``PipelineScheduleMulti._step_microbatches``: at the end of
    a time step a rank sends what it made, receives what its neighbours made, and waits for both.
    """
    steps = time_steps(table)
    when = {
        _at(unit, s, table): step
        for s, row in enumerate(table)
        for unit, step in zip(row, steps[s], strict=True)
        if isinstance(unit, Unit)
    }
    wanted = []
    for unit in table[stage]:
        source = _source(unit, stage, table) if isinstance(unit, Unit) else None
        if isinstance(unit, Unit) and source is not None and source.chunk % len(table) != stage:
            wanted.append((when[source], unit))
    found: dict[int, list[Unit]] = {}
    for step, unit in sorted(wanted, key=lambda message: message[0]):
        found.setdefault(_position(steps[stage], step), []).append(unit)
    return found


def _position(steps: Sequence[int], step: int) -> int:
    """Of the last unit until a time step."""
    return sum(own <= step for own in steps) - 1


def _at(unit: Unit, stage: int, table: Table) -> Unit:
    """The unit with its virtual stage for its chunk."""
    return Unit(unit.kind, unit.micro_batch, unit.chunk * len(table) + stage)


def _source(unit: Unit, stage: int, table: Table) -> Unit | None:
    """What makes its input, with its virtual stage: none for the first forward, the last one's for its backward."""
    here = _at(unit, stage, table)
    last = max(u.chunk for row in table for u in row if isinstance(u, Unit)) * len(table) + len(table) - 1
    if unit.kind == "F":
        return Unit("F", unit.micro_batch, here.chunk - 1) if here.chunk else None
    if here.chunk == last:
        return Unit("F", unit.micro_batch, last)
    return Unit("B", unit.micro_batch, here.chunk + 1)
