"""A table played in the order in which it can be: each entry once all that it needs has ended."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.workload.schedule.placement import Placement
from clustersim.workload.schedule.unit import Overlapped, Table, Unit

__all__ = ["Progress", "needs"]


def needs(unit: Unit, stage: int, placement: Placement) -> list[tuple[int, Unit]]:
    """(stage, unit) of the ends that a unit waits for; of a backward elsewhere the B, which may stand there as I."""
    j, chunk = unit.micro_batch, unit.chunk
    if unit.kind == "W":
        return [(stage, Unit("I", j, chunk))]
    if unit.kind == "F":
        behind = placement.before(stage, chunk)
        return [(behind[0], Unit("F", j, behind[1]))] if behind else []
    ahead = placement.after(stage, chunk)
    own = (stage, Unit("F", j, chunk))
    return [own, (ahead[0], Unit("B", j, ahead[1]))] if ahead else [own]


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
        self._done: set[tuple[int, Unit]] = set()

    def __iter__(self) -> Iterator[tuple[int, Unit | Overlapped]]:
        table, position, done = self._table, self._position, self._done
        blocked: dict[tuple[int, Unit], list[int]] = {}
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
                for unit in (entry,) if isinstance(entry, Unit) else (entry.forward, entry.backward):
                    ends = [(stage, unit)]
                    if unit.kind == "I":
                        ends.append((stage, Unit("B", unit.micro_batch, unit.chunk)))
                    done.update(ends)
                    ready += [s for end in ends for s in blocked.pop(end, ())]

    def waiting(self) -> list[tuple[int, Unit | Overlapped, int, Unit]]:
        """(stage, its entry, stage, unit there that it waits for) for each stage that could not go on."""
        waits = []
        for stage, at in enumerate(self._position):
            if at < len(self._table[stage]):
                entry = self._table[stage][at]
                missing = self._missing(stage, entry)
                if missing:
                    waits.append((stage, entry, *missing))
        return waits

    def _missing(self, stage: int, entry: Unit | Overlapped) -> tuple[int, Unit] | None:
        for unit in (entry,) if isinstance(entry, Unit) else (entry.forward, entry.backward):
            for need in needs(unit, stage, self._placement):
                if need not in self._done:
                    return need
        return None
