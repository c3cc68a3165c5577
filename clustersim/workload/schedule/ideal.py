"""A schedule on ideal hardware: when each unit runs if it takes a given time, and nothing else takes any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from clustersim.workload.schedule.placement import Placement
from clustersim.workload.schedule.progress import Event, Progress, gives, needs
from clustersim.workload.schedule.unit import Overlapped, Table, Unit, units_of

__all__ = ["Cost", "Ideal", "Span", "ideal"]

Cost = float | Callable[[int, int], float]
"""Time of a unit: one for all, or by (stage, chunk); in a unit of the caller's choice."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """From when to when a stage does an entry of its row.

    Parameters
    ----------
    entry : Unit or Overlapped
    start, end : float
        in the unit of the costs
    """

    entry: Unit | Overlapped
    start: float
    end: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Ideal:
    """What :func:`ideal` finds.

    Parameters
    ----------
    rows : tuple[tuple[Span, ...], ...]
        for each stage its entries in order
    """

    rows: tuple[tuple[Span, ...], ...]

    @property
    def makespan(self) -> float:
        """From the start of the first unit of any stage to the end of the last."""
        return max(row[-1].end for row in self.rows)

    @property
    def busy(self) -> tuple[float, ...]:
        """Time in units, by stage."""
        return tuple(sum(span.end - span.start for span in row) for row in self.rows)

    @property
    def bubbles(self) -> tuple[float, ...]:
        """Idle time of each stage between its own first start and its own last end.

        Zero-bubble papers count these: a stage that begins late may end late, for its next step begins late too.
        The idle time within the whole is ``makespan - busy``.
        """
        return tuple(row[-1].end - row[0].start - busy for row, busy in zip(self.rows, self.busy, strict=True))

    def peaks(self, *, before: float = 1, after: float = 0) -> tuple[float, ...]:
        """Most activations that each stage holds at once.

        Parameters
        ----------
        before : float
            held by a micro-batch in a chunk from the start of F to the end of I or B (M_B of Qi et al. 2023)
        after : float
            held from the end of I to the end of W (their M_W)

        Returns
        -------
        tuple[float, ...]
            in the unit of ``before`` and ``after``; at one instant ends come before starts
        """
        return tuple(_peak(row, before, after) for row in self.rows)


def ideal(
    table: Table,
    placement: Placement,
    *,
    forward: Cost,
    backward_input: Cost,
    backward_weight: Cost,
    send: float = 0,
    overlapped: Cost | None = None,
) -> Ideal:
    """Start each entry as soon as its stage is free and what it needs has come.

    Parameters
    ----------
    table : Table
        without faults
    placement : Placement
        of its chunks
    forward, backward_input, backward_weight : float or callable
        time of F, I and W; B takes that of I and W
    send : float
        time from the end of a unit to the arrival at another stage; it keeps neither stage busy
    overlapped : float or callable, optional
        time of a pair of F and B, by stage and by the chunk of the forward; None: the sum of both. A pair of F and I
        always takes the sum

    Returns
    -------
    Ideal

    Raises
    ------
    ValueError
        when the table cannot be played to its end
    """
    ends: dict[Event, float] = {}
    free = [0.0] * len(table)
    rows: list[list[Span]] = [[] for _ in table]

    def time_of(unit: Unit, stage: int) -> float:
        if unit.kind == "F":
            return _cost(forward, stage, unit.chunk)
        takes = 0 if unit.kind == "W" else _cost(backward_input, stage, unit.chunk)
        return takes if unit.kind == "I" else takes + _cost(backward_weight, stage, unit.chunk)

    progress = Progress(table, placement)
    for stage, entry in progress:
        units = tuple(units_of((entry,)))
        start = free[stage]
        for unit in units:
            for event in needs(unit, stage, placement):
                start = max(start, ends[event] + (send if event[0] != stage else 0))
        if overlapped is not None and isinstance(entry, Overlapped) and entry.backward.kind == "B":
            end = start + _cost(overlapped, stage, entry.forward.chunk)
        else:
            end = start + sum(time_of(unit, stage) for unit in units)
        ends |= {event: end for unit in units for event in gives(unit, stage)}
        free[stage] = end
        rows[stage].append(Span(entry=entry, start=start, end=end))
    if progress.waiting():
        raise ValueError("table: some stages wait for each other; check names them")
    return Ideal(rows=tuple(map(tuple, rows)))


def _cost(cost: Cost, stage: int, chunk: int) -> float:
    return cost(stage, chunk) if callable(cost) else cost


def _peak(row: tuple[Span, ...], before: float, after: float) -> float:
    changes: list[tuple[float, int, float]] = []
    for span in row:
        for unit in units_of((span.entry,)):
            if unit.kind == "F":
                changes.append((span.start, 1, before))
            elif unit.kind == "B":
                changes.append((span.end, 0, -before))
            else:
                changes.append((span.end, 0, after - before if unit.kind == "I" else -after))
    held = highest = 0.0
    for _, group in groupby(sorted(changes), key=lambda change: change[:2]):
        held += sum(change[2] for change in group)
        highest = max(highest, held)
    return highest
