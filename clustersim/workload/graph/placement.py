"""Which of a worker's devices each op of a graph sits on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from clustersim.workload.graph.graph import Graph
from clustersim.workload.graph.schedule import ListSchedule

__all__ = ["Placement", "column_placement", "list_placement"]

Placement = Callable[[Graph, int], Sequence[int]]
"""(graph, number of devices) -> a device for each of the graph's ops, in their order. The backward task of an op sits
with it."""


def column_placement(graph: Graph, num_devices: int) -> list[int]:
    """As the table says; a single device needs no table. Ops without a device are -1, which is refused."""
    if num_devices == 1:
        return [0] * len(graph.ops)
    return [-1 if op.device is None else op.device for op in graph.ops]


def list_placement(schedule: ListSchedule) -> list[int]:
    """List scheduling, then moves of single groups for as long as one shortens the step.

    It begins from the greedy schedule or from all ops on one device, whichever is shorter, so that it is never slower
    than one device alone. Groups are tried in their order, again until a whole round has moved none.

    Parameters
    ----------
    schedule : ListSchedule
        over the graph's tasks

    Returns
    -------
    list[int]
        a device for each op of the graph
    """
    group = schedule.tasks.group
    placed = dict.fromkeys(group, 0)
    best = schedule.times(placed).makespan
    greedy = schedule.greedy()
    if (makespan := schedule.times(greedy).makespan) < best:
        best, placed = makespan, greedy
    moved = True
    while moved:
        moved = False
        for g, d in product(sorted(placed), range(schedule.num_devices)):
            if d == placed[g]:
                continue
            shorter = schedule.makespan_below(best, {**placed, g: d})
            if shorter is not None:
                best, placed[g], moved = shorter, d, True
    devices = {task.row: placed[g] for task, g in zip(schedule.tasks.tasks, group, strict=True)}
    return [devices[row] for row in sorted(devices)]
