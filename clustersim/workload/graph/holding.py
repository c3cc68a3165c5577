"""What each device holds of the values that tasks hand on, and for how long."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from clustersim.workload.graph.tasks import Tasks
from clustersim.workload.graph.transfers import Transfer

__all__ = ["ACTIVATIONS", "Holding"]

ACTIVATIONS = "gpu/activations"


class Holding:
    """Signed changes of the bytes that devices hold.

    A value is there from the start of the first task that makes it, or of its receive, to the end of the last task on
    that device that needs it. A derived backward task needs the inputs and the output of its forward task. Where the
    table has its own backward ops, what they need is what they say they come after. The parts of a gradient that
    several devices sum are copies of their own.

    Parameters
    ----------
    tasks : Tasks
    device : Sequence[int]
        of each task
    order : Sequence[int]
        the tasks of all devices in one order
    sent : Sequence[Transfer]
    """

    def __init__(self, tasks: Tasks, device: Sequence[int], order: Sequence[int], sent: Sequence[Transfer]) -> None:
        place = {k: position for position, k in enumerate(order)}
        nbytes = {edge.value: edge.nbytes for edge in tasks.edges}
        makers: dict[tuple[int, int], set[int]] = defaultdict(set)
        users: dict[tuple[int, int], set[int]] = defaultdict(set)
        for edge in tasks.edges:
            makers[edge.value, device[edge.before]].add(edge.before)
            users[edge.value, device[edge.after]].add(edge.after)
            mirror = tasks.tasks[edge.after].mirror
            if mirror >= 0:
                users[edge.value, device[edge.after]].add(mirror)
        self._start: dict[int, int] = defaultdict(int)
        self._end: dict[int, int] = defaultdict(int)
        for (value, _), who in makers.items():
            self._start[min(who, key=place.__getitem__)] += nbytes[value]
        copies = Counter([*makers, *((t.value, t.destination) for t in sent)])
        for key, who in users.items():
            self._end[max(who, key=place.__getitem__)] += copies[key] * nbytes[key[0]]
        # What nobody needs where it was made goes when the last transfer of it has left.
        final = {(t.value, t.source): t for t in sent if (t.value, t.source) not in users}
        self._last_sends = set(final.values())

    def at_start(self, task: int) -> dict[str, int]:
        """Change when a task starts."""
        return _change(self._start[task])

    def at_end(self, task: int) -> dict[str, int]:
        """Change when a task ends."""
        return _change(-self._end[task])

    def at_departure(self, transfer: Transfer) -> dict[str, int]:
        """Change on the sender when a transfer ends."""
        return _change(-transfer.nbytes if transfer in self._last_sends else 0)

    def at_arrival(self, transfer: Transfer) -> dict[str, int]:
        """Change on the receiver when a transfer starts."""
        return _change(transfer.nbytes)


def _change(nbytes: int) -> dict[str, int]:
    return {ACTIVATIONS: nbytes} if nbytes else {}
