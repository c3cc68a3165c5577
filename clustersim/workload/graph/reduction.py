"""Gradients of a device, reduced over the workers as buckets of them are complete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from clustersim.workload.graph.graph import Graph
from clustersim.workload.graph.tasks import Tasks
from clustersim.workload.op import Collective
from clustersim.workload.program import Program

__all__ = ["Reduction", "completed_gradients"]


def completed_gradients(graph: Graph, tasks: Tasks, order: Sequence[int]) -> Mapping[int, int]:
    """Task -> bytes of gradient that its end completes [B].

    Where ops share weights a gradient is complete with the last task of all that do. Derived backward tasks complete
    the gradients of their ops; in a table with its own backward ops every row counts what it gives.
    """
    last = {tasks.group[k]: k for k in order}
    done: dict[int, int] = defaultdict(int)
    for k, task in enumerate(tasks.tasks):
        if task.mirror < 0:
            done[last[tasks.group[k]]] += graph.ops[task.row].gradient
    return done


class Reduction:
    """Writes all-reduces into one device's program.

    Parameters
    ----------
    program : Program
    replicas : int
        workers; a single one reduces nothing
    bucket_nbytes : int
        a bucket is closed by the gradient that fills it [B]

    Attributes
    ----------
    ops : list[int]
        numbers of the all-reduces
    """

    def __init__(self, program: Program, replicas: int, bucket_nbytes: int) -> None:
        self.ops: list[int] = []
        self._program = program
        self._replicas = replicas
        self._bucket_nbytes = bucket_nbytes
        self._pending = 0
        self._last = 0

    def add(self, nbytes: int, *, after: int) -> None:
        """Gradients that are complete when op ``after`` of the program has ended."""
        if not nbytes:
            return
        self._pending += nbytes
        self._last = after
        if self._pending >= self._bucket_nbytes:
            self.close()

    def close(self) -> None:
        """Reduce what has come together."""
        if self._pending and self._replicas > 1:
            op = Collective(name="all-reduce gradients", kind="all_reduce", slot="dp", nbytes=self._pending, axis="dp")
            self.ops.append(self._program.add(op, stream="dp", after=[self._last], phase="backward"))
        self._pending = 0
