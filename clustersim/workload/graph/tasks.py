"""A graph at one batch size: forward and backward tasks, and the values that pass between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from clustersim.hardware.kernel import Kernel
from clustersim.workload.graph.graph import Graph, GraphOp, Phase
from clustersim.workload.op import Compute, Delay

__all__ = ["Edge", "Task", "Tasks", "resolve"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One op of the step on one device.

    Parameters
    ----------
    op : Compute or Delay
        its work; a Delay where the table gives seconds
    phase : {"forward", "backward"}
    row : int
        op of the graph that it belongs to
    mirror : int
        the backward task of a forward one, where it was derived; -1 where there is none
    """

    op: Compute | Delay
    phase: Phase
    row: int
    mirror: int = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A task that needs what another has made.

    Parameters
    ----------
    before, after : int
        tasks
    value : int
        what is handed on: edges of one value from and to the same devices are one transfer. The output of a task has
        the task's number; so has the gradient of a forward task's output, which is its backward task's input
    nbytes : int
        [B]
    """

    before: int
    after: int
    value: int
    nbytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Tasks:
    """All tasks of one step of one worker.

    Parameters
    ----------
    tasks : tuple[Task, ...]
    edges : tuple[Edge, ...]
    group : tuple[int, ...]
        of each task: tasks of one group share a device, because they share weights
    order : tuple[int, ...]
        the tasks so that each follows those it waits for; else in order of the table, the backward pass reversed
    """

    tasks: tuple[Task, ...]
    edges: tuple[Edge, ...]
    group: tuple[int, ...]
    order: tuple[int, ...]


def resolve(graph: Graph, *, batch: int) -> Tasks:
    """The tasks of ``batch`` samples.

    Where the graph has no backward ops they are derived. The backward task of an op waits for those of its
    successors, sits on its device and does twice its work in twice its launches: one product for the gradient of the
    input, one for that of the weights. The gradient of an output has the output's bytes. The gradient of the graph's
    own input counts too, though nobody needs it.

    Parameters
    ----------
    graph : Graph
    batch : int
        samples of one worker

    References
    ----------
    Kaplan et al., Scaling Laws for Neural Language Models, 2020, section 2.1: the backward pass costs twice the
    forward pass.
    """
    ops = graph.ops
    n = len(ops)
    number = {op.name: k for k, op in enumerate(ops)}
    out = [round(op.out_nbytes * (batch if op.per_sample else 1)) for op in ops]
    inputs = [[number[name] for name in dict.fromkeys(op.after)] for op in ops]
    derive = not graph.has_backward
    tasks = [
        Task(
            op=_work(op, batch, sum(out[k] for k in inputs[row]) + out[row]),
            phase=op.phase,
            row=row,
            mirror=n + row if derive else -1,
        )
        for row, op in enumerate(ops)
    ]
    edges = [Edge(before=u, after=v, value=u, nbytes=out[u]) for v in range(n) for u in inputs[v]]
    if derive:
        tasks += [Task(op=_twice(task.op), phase="backward", row=task.row) for task in tasks]
        edges += [Edge(before=n + e.after, after=n + e.before, value=n + e.before, nbytes=e.nbytes) for e in edges]
        edges += [Edge(before=k, after=n + k, value=k, nbytes=out[k]) for k in range(n)]
    rows = _groups(ops, number)
    return Tasks(
        tasks=tuple(tasks),
        edges=tuple(edges),
        group=tuple(rows[task.row] for task in tasks),
        order=_order(len(tasks), edges, [k if k < n else 3 * n - k for k in range(len(tasks))]),
    )


def _work(op: GraphOp, batch: int, operands: int) -> Compute | Delay:
    """The forward work of an op."""
    scale = batch if op.per_sample else 1
    if op.seconds is not None:
        return Delay(name=op.name, kind=op.kind, measured_ns=round(1e9 * op.seconds * scale))
    moved = operands if op.nbytes is None else op.nbytes * scale
    weights = op.gradient if op.weight_nbytes is None else op.weight_nbytes
    kernel = Kernel(
        kind=op.kind,
        dtype=op.dtype,
        flops=round(op.flops * scale / op.launches),
        nbytes=round((moved + weights) / op.launches),
        count=op.launches,
    )
    return Compute(name=op.name, kind=op.kind, kernels=(kernel,))


def _twice(op: Compute | Delay) -> Compute | Delay:
    """The backward work that belongs to some forward work."""
    name = f"{op.name} backward"
    if isinstance(op, Delay):
        return Delay(name=name, kind=op.kind, measured_ns=2 * op.measured_ns)
    return Compute(name=name, kind=op.kind, kernels=2 * op.kernels)


def _groups(ops: Sequence[GraphOp], number: dict[str, int]) -> list[int]:
    """For each op the first of those that share its device, over any number of links."""
    root = list(range(len(ops)))

    def find(k: int) -> int:
        while root[k] != k:
            k = root[k]
        return k

    for k, op in enumerate(ops):
        if op.beside is not None:
            a, b = find(k), find(number[op.beside])
            root[max(a, b)] = min(a, b)
    return [find(k) for k in range(len(ops))]


def _order(n: int, edges: Sequence[Edge], wish: Sequence[int]) -> tuple[int, ...]:
    """Tasks in topological order; of those that are free the one of the least wish comes first."""
    waits = [0] * n
    after: list[list[int]] = [[] for _ in range(n)]
    for edge in edges:
        waits[edge.after] += 1
        after[edge.before].append(edge.after)
    free = [(wish[k], k) for k in range(n) if not waits[k]]
    heapify(free)
    found = []
    while free:
        _, at = heappop(free)
        found.append(at)
        for k in after[at]:
            waits[k] -= 1
            if not waits[k]:
                heappush(free, (wish[k], k))
    return tuple(found)
