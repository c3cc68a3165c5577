"""A graph spread over the devices of one worker: who does what, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clustersim.faults import BadInput, Fault, nearest_name, unfit_call
from clustersim.workload.graph.estimate import Estimate
from clustersim.workload.graph.graph import Graph, GraphOp
from clustersim.workload.graph.placement import Placement, column_placement, list_placement
from clustersim.workload.graph.schedule import ListSchedule
from clustersim.workload.graph.tasks import Tasks, resolve
from clustersim.workload.op import Compute

__all__ = ["Spread", "spread"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Tasks with their devices.

    Parameters
    ----------
    graph : Graph
    tasks : Tasks
    num_devices : int
        M
    device : tuple[int, ...]
        of each task
    order : tuple[int, ...]
        the tasks of all devices in one order, each after those that it waits for
    estimate_s : float, optional
        the step by the estimate, without reductions and update [s]; None where nothing was estimated
    """

    graph: Graph
    tasks: Tasks
    num_devices: int
    device: tuple[int, ...]
    order: tuple[int, ...]
    estimate_s: float | None

    def ops_on(self, device: int) -> list[GraphOp]:
        """Ops of the graph that sit on a device."""
        rows = {task.row for task, d in zip(self.tasks.tasks, self.device, strict=True) if d == device}
        return [self.graph.ops[row] for row in sorted(rows)]


def spread(
    graph: Graph, *, batch: int, num_devices: int, placement: str | Placement, estimate: Estimate | None
) -> Spread:
    """Place a graph and put its tasks in order.

    With an estimate, tasks run in the order of :class:`clustersim.workload.graph.schedule.ListSchedule`; without, in
    the order of the table as far as their inputs allow, and backwards in the backward pass.

    Parameters
    ----------
    graph : Graph
    batch : int
        samples of the worker
    num_devices : int
        M
    placement : {"column", "list"} or callable
        see :func:`clustersim.workload.graph.step.graph_step`
    estimate : Estimate, optional

    Raises
    ------
    BadInput
        with every fault of the placement
    """
    tasks = resolve(graph, batch=batch)
    faults = list(_before(tasks, placement, estimate))
    if faults:
        raise BadInput(faults)
    schedule = None if estimate is None else ListSchedule(tasks, num_devices, estimate)
    if callable(placement):
        if fault := unfit_call("placement", placement, graph, num_devices):
            raise BadInput([fault])
        given: object = placement(graph, num_devices)
        if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str):
            rule = "must return a device for each op"
            raise BadInput([Fault(key="placement", value=repr(given)[:60], rule=rule)])
        placed = [int(d) for d in given]
    elif placement == "list" and schedule is not None:
        placed = list_placement(schedule)
    else:
        placed = column_placement(graph, num_devices)
    faults = list(_after(graph, placed, num_devices))
    if faults:
        raise BadInput(faults)
    by_group = {g: placed[task.row] for task, g in zip(tasks.tasks, tasks.group, strict=True)}
    times = None if schedule is None else schedule.times(by_group)
    return Spread(
        graph=graph,
        tasks=tasks,
        num_devices=num_devices,
        device=tuple(placed[task.row] for task in tasks.tasks),
        order=tasks.order if times is None else times.order,
        estimate_s=None if times is None else times.makespan,
    )


def _before(tasks: Tasks, placement: str | Placement, estimate: Estimate | None) -> Iterator[Fault]:
    """What is missing to place anything."""
    known = ("column", "list")
    if not callable(placement) and placement not in known:
        rule, near = f"must be one of {', '.join(known)}, or a callable", nearest_name(str(placement), known)
        yield Fault(key="placement", value=placement, rule=rule, nearest=near)
    if placement == "list" and estimate is None:
        yield Fault(key="estimate", value=None, rule="must be given for the list placement: it compares times")
    works = next((task.op.name for task in tasks.tasks if isinstance(task.op, Compute)), None)
    if estimate is not None and estimate.gpu is None and works is not None:
        yield Fault(key="estimate.gpu", value=None, rule=f"must be given: {works} gives work, not seconds")


def _after(graph: Graph, placed: Sequence[int], num_devices: int) -> Iterator[Fault]:
    """What is wrong with a placement."""
    if len(placed) != len(graph.ops):
        rule = f"devices: there must be one for each of the {len(graph.ops)} ops"
        yield Fault(key="placement", value=len(placed), rule=rule, nearest=len(graph.ops))
        return
    last = num_devices - 1
    device = {op.name: d for op, d in zip(graph.ops, placed, strict=True)}
    for op, d in zip(graph.ops, placed, strict=True):
        key = f"{graph.name}.{op.name}.device"
        if not 0 <= d <= last:
            given = None if d == -1 and op.device is None else d
            yield Fault(key=key, value=given, rule=f"must be from 0 to {last}", nearest=min(max(d, 0), last))
        elif op.beside is not None and device[op.beside] != d:
            rule = f"must be the device of {op.beside}, whose weights it uses"
            yield Fault(key=key, value=d, rule=rule, nearest=device[op.beside])
