"""List scheduling: in which order tasks run where, and how long a step takes by the estimate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from clustersim.units import Unit
from clustersim.workload.graph.estimate import Estimate
from clustersim.workload.graph.tasks import Edge, Tasks

__all__ = ["ListSchedule", "Times"]

_ROUNDING = 1e-9
"""Part by which sums of the same times in another order may differ, with room to spare."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """When tasks run.

    Parameters
    ----------
    order : tuple[int, ...]
        tasks by their start; each follows those it waits for
    end : tuple[float, ...]
        of each task [s]
    """

    order: tuple[int, ...]
    end: tuple[float, ...]

    @property
    def makespan(self) -> Annotated[float, Unit("s")]:
        """End of the last task [s]."""
        return max(self.end)


class ListSchedule:
    """Tasks on devices, those on the longest way to the end first.

    With w the time of a task and c that of a transfer, the rank of task i is w_i + max over its successors j of
    (c_ij · (M-1)/M + rank_j): the longest way to the end, where a transfer counts with the chance that it is needed.

    Parameters
    ----------
    tasks : Tasks
    num_devices : int
        M
    estimate : Estimate

    References
    ----------
    Topcuoglu, Hariri, Wu: Performance-effective and low-complexity task scheduling for heterogeneous computing
    (HEFT), TPDS 13(3), 2002.
    """

    def __init__(self, tasks: Tasks, num_devices: int, estimate: Estimate) -> None:
        self.tasks = tasks
        self.num_devices = num_devices
        n = len(tasks.tasks)
        self._compute = [estimate.compute(task.op) for task in tasks.tasks]
        self._inputs: list[list[tuple[Edge, float]]] = [[] for _ in range(n)]
        self._outputs: list[list[tuple[Edge, float]]] = [[] for _ in range(n)]
        for edge in tasks.edges:
            transfer = estimate.transfer(edge.nbytes)
            self._inputs[edge.after].append((edge, transfer))
            self._outputs[edge.before].append((edge, transfer))
        rank, self._rest = [0.0] * n, [0.0] * n
        chance = (num_devices - 1) / num_devices
        for k in reversed(tasks.order):
            rank[k] += self._compute[k]
            self._rest[k] += self._compute[k]
            for edge, transfer in self._inputs[k]:
                self._rest[edge.before] = max(self._rest[edge.before], self._rest[k])
                rank[edge.before] = max(rank[edge.before], chance * transfer + rank[k])
        place = {k: position for position, k in enumerate(tasks.order)}
        self._key = [(-rank[k], place[k]) for k in range(n)]

    def greedy(self) -> dict[int, int]:
        """Device of each group: tasks by falling rank, each where it ends first; of equals the lowest number.

        Here transfers do not meet each other.
        """
        chosen: dict[int, int] = {}
        end, device = [0.0] * len(self._compute), [0] * len(self._compute)
        free = [0.0] * self.num_devices

        def start(k: int, d: int) -> float:
            inputs = (end[e.before] + (0.0 if device[e.before] == d else c) for e, c in self._inputs[k])
            return max(free[d], max(inputs, default=0.0))

        for k in sorted(range(len(end)), key=self._key.__getitem__):
            group = self.tasks.group[k]
            possible = (chosen[group],) if group in chosen else range(self.num_devices)
            at, d = min((start(k, d), d) for d in possible)
            end[k] = free[d] = at + self._compute[k]
            device[k] = chosen[group] = d
        return chosen

    def times(self, device_of_group: Mapping[int, int]) -> Times:
        """When tasks run under a placement.

        A device that is free takes the first task that is there, and of those that are there at once the one of the
        highest rank. Transfers from one device to another follow each other.

        Parameters
        ----------
        device_of_group : Mapping[int, int]
            for every group of ``tasks``
        """
        order, end = self._played(device_of_group, math.inf)
        return Times(order=tuple(order), end=tuple(end))

    def makespan_below(self, limit: float, device_of_group: Mapping[int, int]) -> float | None:
        """End of the last task under a placement [s]; None where it is not below ``limit``.

        A task that starts too late for those that follow it settles that before the last one is reached.
        """
        order, end = self._played(device_of_group, limit)
        makespan = max(end)
        return makespan if len(order) == len(end) and makespan < limit else None

    def _played(self, device_of_group: Mapping[int, int], limit: float) -> tuple[list[int], list[float]]:
        """Tasks by their start and the end of each [s], up to one with which the last must end after ``limit``."""
        device = [device_of_group[g] for g in self.tasks.group]
        end = [0.0] * len(device)
        free = [0.0] * self.num_devices
        links = _Links(device, self.tasks.edges)
        waits = [len(inputs) for inputs in self._inputs]
        there = {k: 0.0 for k, n in enumerate(waits) if not n}
        order: list[int] = []
        latest = limit * (1 + _ROUNDING)
        while there:
            start, _, k = min((max(free[device[k]], at), self._key[k], k) for k, at in there.items())
            d = device[k]
            if start + self._rest[k] > latest:
                break
            del there[k]
            order.append(k)
            end[k] = free[d] = start + self._compute[k]
            for edge, transfer in self._outputs[k]:
                after = edge.after
                if device[after] != d:
                    links.made(edge, end[k], transfer)
                waits[after] -= 1
                if not waits[after]:
                    there[after] = max(
                        end[e.before] if device[e.before] == device[after] else links.arrival(e, end[e.before])
                        for e, _ in self._inputs[after]
                    )
        return order, end


class _Links:
    """Transfers between devices under way: one link for each direction of each pair, first come first served.

    Parameters
    ----------
    device : Sequence[int]
        of each task
    edges : Sequence[Edge]
        those between tasks of one device are left out
    """

    def __init__(self, device: Sequence[int], edges: Sequence[Edge]) -> None:
        self._device = device
        self._missing = Counter(self._route(edge) for edge in edges if device[edge.before] != device[edge.after])
        self._free: dict[tuple[int, int], float] = {}
        self._arrival: dict[tuple[int, int, int], float] = {}

    def made(self, edge: Edge, end: float, transfer: float) -> None:
        """One edge's task has ended; what it hands on leaves with the last of those of its value."""
        route = self._route(edge)
        self._missing[route] -= 1
        if not self._missing[route]:
            link = route[1:]
            self._arrival[route] = self._free[link] = max(end, self._free.get(link, 0.0)) + transfer

    def arrival(self, edge: Edge, end: float) -> float:
        """When an edge's value is there [s]; ``end`` of its task as long as others of its value have not ended."""
        return self._arrival.get(self._route(edge), end)

    def _route(self, edge: Edge) -> tuple[int, int, int]:
        return edge.value, self._device[edge.before], self._device[edge.after]
