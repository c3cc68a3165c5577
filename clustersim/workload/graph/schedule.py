"""List scheduling: in which order tasks run where, and how long a step takes without contention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from clustersim.units import Unit
from clustersim.workload.graph.estimate import Estimate
from clustersim.workload.graph.tasks import Tasks

__all__ = ["ListSchedule", "Times"]


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
        self._inputs: list[list[tuple[int, float]]] = [[] for _ in range(n)]
        self._readers: list[list[int]] = [[] for _ in range(n)]
        for edge in tasks.edges:
            self._inputs[edge.after].append((edge.before, estimate.transfer(edge.nbytes)))
            self._readers[edge.before].append(edge.after)
        rank = [0.0] * n
        chance = (num_devices - 1) / num_devices
        for k in reversed(tasks.order):
            rank[k] += self._compute[k]
            for before, transfer in self._inputs[k]:
                rank[before] = max(rank[before], chance * transfer + rank[k])
        place = {k: position for position, k in enumerate(tasks.order)}
        self._key = [(-rank[k], place[k]) for k in range(n)]

    def greedy(self) -> dict[int, int]:
        """Device of each group: tasks by falling rank, each where it ends first; of equals the lowest number."""
        chosen: dict[int, int] = {}
        end, device = [0.0] * len(self._compute), [0] * len(self._compute)
        free = [0.0] * self.num_devices
        for k in sorted(range(len(end)), key=self._key.__getitem__):
            group = self.tasks.group[k]
            possible = (chosen[group],) if group in chosen else range(self.num_devices)
            start, d = min((max(free[d], self._arrival(k, d, device, end)), d) for d in possible)
            end[k] = free[d] = start + self._compute[k]
            device[k] = chosen[group] = d
        return chosen

    def times(self, device_of_group: Mapping[int, int]) -> Times:
        """When tasks run under a placement.

        A device that is free takes the first task that is there, and of those that are there at once the one of the
        highest rank. Transfers do not meet each other.

        Parameters
        ----------
        device_of_group : Mapping[int, int]
            for every group of ``tasks``
        """
        device = [device_of_group[g] for g in self.tasks.group]
        end = [0.0] * len(device)
        free = [0.0] * self.num_devices
        waits = [len(inputs) for inputs in self._inputs]
        there = {k: 0.0 for k, n in enumerate(waits) if not n}
        order: list[int] = []
        while there:
            start, _, k = min((max(free[device[k]], at), self._key[k], k) for k, at in there.items())
            del there[k]
            order.append(k)
            end[k] = free[device[k]] = start + self._compute[k]
            for reader in self._readers[k]:
                waits[reader] -= 1
                if not waits[reader]:
                    there[reader] = self._arrival(reader, device[reader], device, end)
        return Times(order=tuple(order), end=tuple(end))

    def _arrival(self, k: int, d: int, device: Sequence[int], end: Sequence[float]) -> float:
        """When all inputs of a task are on device d [s]."""
        return max((end[b] + (0.0 if device[b] == d else c) for b, c in self._inputs[k]), default=0.0)
