"""What has to travel between a worker's devices, once a placement is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from clustersim.workload.graph.tasks import Tasks

__all__ = ["Transfer", "transfers"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Transfer:
    """One value on its way from one device to another.

    An output goes to a device once, however many tasks read it there. The gradient of an output is summed on the device
    of those who read it and comes back once. So each pass moves the same bytes.

    Parameters
    ----------
    value : int
        see :class:`clustersim.workload.graph.tasks.Edge`
    source, destination : int
        devices
    nbytes : int
        [B]
    after : int
        the last of the tasks that make it, in the order of the step: it leaves then
    readers : tuple[int, ...]
        tasks that wait for it
    """

    value: int
    source: int
    destination: int
    nbytes: int
    after: int
    readers: tuple[int, ...]


def transfers(tasks: Tasks, device: Sequence[int], order: Sequence[int]) -> list[Transfer]:
    """All transfers, in the order in which they leave.

    Parameters
    ----------
    tasks : Tasks
    device : Sequence[int]
        of each task
    order : Sequence[int]
        the tasks of all devices in one order, each after those that it waits for
    """
    place = {k: position for position, k in enumerate(order)}
    makers: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    readers: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    nbytes: dict[int, int] = {}
    for edge in tasks.edges:
        route = (edge.value, device[edge.before], device[edge.after])
        if route[1] != route[2]:
            makers[route].add(edge.before)
            readers[route].add(edge.after)
            nbytes[edge.value] = edge.nbytes
    found = [
        Transfer(
            value=value,
            source=source,
            destination=destination,
            nbytes=nbytes[value],
            after=max(makers[value, source, destination], key=place.__getitem__),
            readers=tuple(sorted(readers[value, source, destination])),
        )
        for value, source, destination in makers
    ]
    return sorted(found, key=lambda t: (place[t.after], t.destination, t.value))
