"""Pools: counted stores with first-come, first-served grants; ties of one instant go by key."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from clustersim.engine.lane import Lane

__all__ = ["Stores"]

Request = tuple[int, int, int, Lane]
"""(instant of the request [ns], key of the lane in that store, op, lane)"""


class Stores:
    """All stores of a scene.

    A request waits in the line of every store it needs and is granted when it heads all of them and each has enough:
    nobody overtakes, so back-pressure is real.

    Parameters
    ----------
    capacity : Iterable[int]
        of each store [units]
    """

    __slots__ = ("available", "changed", "lines", "needs")

    def __init__(self, capacity: Iterable[int]) -> None:
        self.available = list(capacity)
        self.lines: list[list[Request]] = [[] for _ in self.available]
        self.needs: dict[tuple[Lane, int], list[tuple[int, int]]] = {}
        self.changed: set[int] = set()

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

    def grant(self) -> list[tuple[Lane, int]]:
        """Ops that may start now, in key order."""
        granted: list[tuple[Lane, int]] = []
        while self.changed:
            store = min(self.changed)
            line = self.lines[store]
            if not line:
                self.changed.discard(store)
                continue
            _, _, op, lane = line[0]
            needs = self.needs[lane, op]
            if not all(self.lines[s][0][2:] == (op, lane) and self.available[s] >= amount for s, amount in needs):
                self.changed.discard(store)
                continue
            for s, amount in needs:
                heappop(self.lines[s])
                self.available[s] -= amount
                self.changed.add(s)
            del self.needs[lane, op]
            granted.append((lane, op))
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
