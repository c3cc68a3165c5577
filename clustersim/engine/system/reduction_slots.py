"""Trees that switches hold: a communicator whose switches have no slot left runs without in-network reduction."""

from __future__ import annotations

from collections import Counter

import numpy as np

from clustersim.collective.cost import GroupCost
from clustersim.topology.topology import Topology

__all__ = ["ReductionSlots"]


class ReductionSlots:
    """Slots of the switches' reduction engines, as the groups of a run take them.

    A library asks for a tree when it makes a communicator and keeps it, so slots are taken for the whole run. Equal
    groups get theirs together or not at all: which of them came first would depend on the numbers of their ranks.

    Attributes
    ----------
    taken : Counter[int]
        trees by the resource of each engine
    """

    __slots__ = ("_engines", "_slots", "taken")

    def __init__(self, topology: Topology) -> None:
        table, network = topology.resources, topology.in_network
        reduction = table.kinds.index("reduction") if "reduction" in table.kinds else -1
        self._engines = table.kind == reduction
        self._slots = 0 if network is None else network.slots
        self.taken: Counter[int] = Counter()

    def take(self, cost: GroupCost) -> str:
        """Take a slot of every engine for each group that loads it; why not, where there are too few, else empty."""
        used = self._engines[cost.row] & cost.load.any(axis=1)
        engine, trees = np.unique(cost.row[used], return_counts=True)
        wanted = Counter(dict(zip(engine.tolist(), trees.tolist(), strict=True)))
        most = max((self.taken[row] + count for row, count in wanted.items()), default=0)
        if most > self._slots:
            return f"a switch would have to hold {most} trees and has slots for {self._slots}"
        self.taken += wanted
        return ""
