"""A table played in the order in which it can be: each entry once all that it needs has ended."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.workload.schedule.placement import Placement
from clustersim.workload.schedule.unit import Kind, Overlapped, Table, Unit, units_of

__all__ = ["Event", "Progress", "gives", "needs"]

Event = tuple[int, Kind, int, int]
"""The end of a unit: stage, kind, micro-batch, chunk. What follows an I or a B alike waits for a B."""


def needs(unit: Unit, stage: int, placement: Placement) -> list[Event]:
    """The ends that a unit on ``stage`` waits for."""
    j, chunk = unit.micro_batch, unit.chunk
    if unit.kind == "W":
        return [(stage, "I", j, chunk)]
    if unit.kind == "F":
        behind = placement.before(stage, chunk)
        return [(behind[0], "F", j, behind[1])] if behind else []
    ahead = placement.after(stage, chunk)
    own: Event = (stage, "F", j, chunk)
    return [own, (ahead[0], "B", j, ahead[1])] if ahead else [own]


def gives(unit: Unit, stage: int) -> list[Event]:
    """The ends that others may wait for when a unit on ``stage`` has ended."""
    j, chunk = unit.micro_batch, unit.chunk
    if unit.kind == "W":
        return []
    return [(stage, "I", j, chunk), (stage, "B", j, chunk)] if unit.kind == "I" else [(stage, unit.kind, j, chunk)]


class Progress:
    """Iterates over (stage, entry) of a table, an entry after all that it needs; ends early where it cannot go on.

    Parameters
    ----------
    table : Table
        complete
    placement : Placement
    """

    def __init__(self, table: Table, placement: Placement) -> None:
        self._table = table
        self._placement = placement
        self._position = [0] * len(table)
        self._done: set[Event] = set()

    def __iter__(self) -> Iterator[tuple[int, Unit | Overlapped]]:
        table, position, done = self._table, self._position, self._done
        blocked: dict[Event, list[int]] = {}
        ready = list(range(len(table)))
        while ready:
            stage = ready.pop()
            while position[stage] < len(table[stage]):
                entry = table[stage][position[stage]]
                missing = self._missing(stage, entry)
                if missing:
                    blocked.setdefault(missing, []).append(stage)
                    break
                yield stage, entry
                position[stage] += 1
                for unit in units_of((entry,)):
                    for event in gives(unit, stage):
                        done.add(event)
                        if event in blocked:
                            ready += blocked.pop(event)

    def waiting(self) -> list[tuple[int, Unit | Overlapped, int, Unit]]:
        """(stage, its entry, stage, unit there that it waits for) for each stage that could not go on."""
        waits = []
        for stage, at in enumerate(self._position):
            if at < len(self._table[stage]):
                entry = self._table[stage][at]
                missing = self._missing(stage, entry)
                if missing:
                    other, kind, j, chunk = missing
                    waits.append((stage, entry, other, Unit(kind, j, chunk)))
        return waits

    def _missing(self, stage: int, entry: Unit | Overlapped) -> Event | None:
        for unit in units_of((entry,)):
            for event in needs(unit, stage, self._placement):
                if event not in self._done:
                    return event
        return None
