"""A pipeline schedule on ideal hardware: what its table says, before any model or cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustersim.plot.stage_rows import Box, Lane, draw_rows, rows_or_new
from clustersim.workload.schedule import Placement, Table, Unit, ideal, loop, units_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["schedule"]


def schedule(
    table: Table,
    placement: Placement | None = None,
    *,
    forward: float = 1,
    backward_input: float = 1,
    backward_weight: float = 1,
    send: float = 0,
    overlapped: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a schedule as its paper does: a row a stage, a box a unit, blank where the stage waits.

    Overlapped units share the height of the row, the forward above. With several chunks a stage, later ones are darker;
    of two directions the second is.

    Parameters
    ----------
    table : Table
        without faults
    placement : Placement, optional
        of its chunks; None: in a loop over the stages
    forward, backward_input, backward_weight, send, overlapped : float
        times, as :func:`clustersim.workload.schedule.ideal` takes them
    ax : Axes, optional
        where to draw; a new figure when None

    Returns
    -------
    Axes
        one PolyCollection for each kind of unit and chunk

    Raises
    ------
    ValueError
        when the table cannot be played to its end
    """
    chunks = 1 + max(unit.chunk for row in table for unit in units_of(row))
    played = ideal(
        table,
        placement or loop(len(table), chunks),
        forward=forward,
        backward_input=backward_input,
        backward_weight=backward_weight,
        send=send,
        overlapped=overlapped,
    )
    boxes = []
    for stage, row in enumerate(played.rows):
        for span in row:
            if isinstance(span.entry, Unit):
                boxes.append(_box(stage, span.entry, span.start, span.end))
            else:
                boxes.append(_box(stage, span.entry.forward, span.start, span.end, lane="upper"))
                boxes.append(_box(stage, span.entry.backward, span.start, span.end, lane="lower"))
    names = [f"stage {s}" for s in range(len(table))]
    ax = rows_or_new(ax, names)
    draw_rows(ax, boxes, names, chunks)
    ax.set_xlabel(f"time [F = {forward:g}, I = {backward_input:g}, W = {backward_weight:g}]")
    return ax


def _box(stage: int, unit: Unit, start: float, end: float, lane: Lane = "whole") -> Box:
    return Box(
        row=stage, start=start, end=end, kind=unit.kind, micro_batch=unit.micro_batch, shade=unit.chunk, lane=lane
    )
