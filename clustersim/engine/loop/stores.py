"""Pools: counted stores with first-come, first-served grants; ties of one instant go by key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from clustersim.engine.loop.lane import Lane

__all__ = ["Stores", "Wait"]

Request = tuple[int, int, int, Lane]
"""(instant of the request [ns], key of the lane in that store, op, lane)"""


@dataclass(frozen=True, slots=True)
class Wait:
    """Of a request that was granted later than it was made.

    Attributes
    ----------
    store : int
        that was short last, or whose line it stood in
    until : int
        when it was granted [ns]
    giver : tuple[Lane, int]
        (lane, op) that gave back what was waited for
    """

    store: int
    until: int
    giver: tuple[Lane, int]


class Stores:
    """All stores of a scene.

    A request waits in the line of every store it needs and is granted when it heads all of them and each has enough:
    nobody overtakes, so back-pressure is real.

    Parameters
    ----------
    capacity : Iterable[int]
        of each store [units]

    Attributes
    ----------
    waited : dict[tuple[Lane, int], Wait]
        by (lane, op), those requests that had to wait
    """

    __slots__ = ("_freed", "_short", "available", "changed", "lines", "needs", "waited")

    def __init__(self, capacity: Iterable[int]) -> None:
        self.available = list(capacity)
        self.lines: list[list[Request]] = [[] for _ in self.available]
        self.needs: dict[tuple[Lane, int], list[tuple[int, int]]] = {}
        self.changed: set[int] = set()
        self.waited: dict[tuple[Lane, int], Wait] = {}
        self._short: dict[
            tuple[Lane, int], int
        ] = {}  # by request, the store that held it up when it was last looked at
        self._freed: dict[int, tuple[Lane, int]] = {}  # by store, the op whose end moved its line at this instant

    def ask(self, now: int, lane: Lane, op: int) -> None:
        """Queue an op for what it takes."""
        needs = []
        for pool, amount in lane.flat.pooled[op]:
            store, key = lane.stores[pool]
            needs.append((store, amount))
            heappush(self.lines[store], (now, key, op, lane))
            self.changed.add(store)
        self.needs[lane, op] = needs

    def give(self, lane: Lane, op: int) -> None:
        """Return what an op that has ended gives back."""
        for pool, amount in lane.flat.giving[op]:
            store, _ = lane.stores[pool]
            self.available[store] += amount
            self.changed.add(store)
            before = self._freed.get(store)
            if before is None or (lane.spec.rank, op) < (before[0].spec.rank, before[1]):
                self._freed[store] = lane, op

    def grant(self, now: int) -> list[tuple[Lane, int]]:
        """Ops that may start now, in key order."""
        granted: list[tuple[Lane, int]] = []
        while self.changed:
            store = min(self.changed)
            line = self.lines[store]
            if not line:
                self.changed.discard(store)
                continue
            asked, _, op, lane = line[0]
            needs = self.needs[lane, op]
            short = [s for s, amount in needs if self.lines[s][0][2:] != (op, lane) or self.available[s] < amount]
            if short:
                self._short[lane, op] = short[0]
                self.changed.discard(store)
                continue
            held_up = self._short.pop((lane, op), store)
            if asked < now:
                self.waited[lane, op] = Wait(held_up, now, self._freed[held_up])
            for s, amount in needs:
                heappop(self.lines[s])
                self.available[s] -= amount
                self.changed.add(s)
                if asked < now:  # who stands behind it has waited for the same
                    self._freed.setdefault(s, self._freed[held_up])
            del self.needs[lane, op]
            granted.append((lane, op))
        self._freed.clear()
        return granted

    def forget(self, lanes: set[Lane]) -> None:
        """Drop the requests of cancelled lanes."""
        for store, line in enumerate(self.lines):
            kept = [request for request in line if request[3] not in lanes]
            if len(kept) < len(line):
                self.lines[store] = sorted(kept, key=lambda request: request[:3])
                self.changed.add(store)
        for waiting in [key for key in self.needs if key[0] in lanes]:
            del self.needs[waiting]
