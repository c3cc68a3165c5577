"""Cuts through a group: how fast what must cross each can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.bound import lower_bound
from clustersim.collective.cut import Cut, crossing
from clustersim.collective.pairs import Pairs
from clustersim.topology.topology import Topology

__all__ = ["Cuts", "LowerBound"]

ALL_PAIRS = 512
"""Members up to which every pair is routed; above that only cuts around some members and nodes are looked at."""

_SOME_MEMBERS, _SOME_NODES, _MOST_PAIRS = 16, 8, 2**18


@dataclass(frozen=True, kw_only=True, slots=True)
class LowerBound:
    """Least time of a collective, and the cut that sets it.

    Parameters
    ----------
    seconds : float
        [s]
    by : str
        in words, for the reader; empty where nothing must cross anything
    """

    seconds: float
    by: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Cuts:
    """The cuts of one group.

    **One cut.** Every byte that leaves a side crosses one of its resources, so t ≥ (bytes that must leave)/(their
    capacity together), and likewise inward. What must cross is :func:`clustersim.collective.cut.crossing`; it holds
    with reduction in the network too, and for relays, since a member that passes bytes on is on one of the two sides.

    **All parts at once.** Where no switch reduces, an all_reduce among P parts of a partition takes at least 2(P-1)S in
    all: P-1 sends before one part knows the sum, P-1 more before all do. So t ≥ 2(P-1)S / Σ capacity out of the parts:
    :func:`clustersim.collective.bound.lower_bound` at their mean. Parts are the members, and the nodes.

    Neither counts latency, protocols or the memory of the GPUs.

    Parameters
    ----------
    cuts : tuple[Cut, ...]
    partitions : tuple[tuple[str, int, float], ...]
        name of the parts, their number, their mean capacity [B/s]; empty where switches reduce, or there are more than
        512 members, since not every pair is looked at then

    References
    ----------
    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009).
    """

    cuts: tuple[Cut, ...]
    partitions: tuple[tuple[str, int, float], ...]

    @classmethod
    def of(cls, topology: Topology, devices: NDArray[np.int64], rows: NDArray[np.int64], *, reducing: bool) -> Cuts:
        """The cuts around members and nodes, and around what lies behind each kind of link.

        Parameters
        ----------
        devices : NDArray[int64], shape (n,)
            of the members, pairwise different
        rows : NDArray[int64], shape (k,)
            resources that a collective crosses, the busiest first; they decide which other cuts are worth a look
        reducing : bool
            whether switches on the way add up
        """
        n = len(devices)
        if n < 2:
            return cls(cuts=(), partitions=())
        node = np.unique(topology.node_of[devices], return_inverse=True)[1].reshape(-1)
        member = np.arange(n)
        if n > ALL_PAIRS:
            return cls(cuts=tuple(_some(topology, devices, node)), partitions=())
        pairs = Pairs.between(topology, devices, np.repeat(member, n), np.tile(member, n))
        parts = [("rank", member)]
        if 1 < node.max() + 1 < n:
            parts.append(("node", node))
        cuts: list[Cut] = []
        partitions = []
        for name, part in parts:
            found = pairs.around(part, name)
            cuts += found
            partitions.append((name, len(found), float(np.mean([cut.outward for cut in found]))))
        for inside in pairs.behind(rows):
            name = f"{int(inside.sum())} ranks"
            cuts.append(pairs.around(np.where(inside, 0, 1), name)[0])
        return cls(cuts=tuple(cuts), partitions=() if reducing else tuple(partitions))

    def bound(self, kind: str, nbytes: int) -> LowerBound:
        """Least time of a collective of the group.

        Parameters
        ----------
        kind : str
        nbytes : int
            payload, as :data:`clustersim.collective.traffic.Algorithm` counts it [B]
        """
        best = LowerBound(seconds=0.0, by="")
        for cut in self.cuts:
            outward, inward = crossing(kind, nbytes, cut.inside)
            for need, capacity, way, over in (
                (outward, cut.outward, "out of", cut.outward_over),
                (inward, cut.inward, "into", cut.inward_over),
            ):
                if need and need / capacity > best.seconds:
                    best = LowerBound(seconds=need / capacity, by=f"what must get {way} {cut.name}, over {over}")
        if kind == "all_reduce":
            for name, num, mean in self.partitions:
                seconds = lower_bound(kind, nbytes, num, mean)
                if seconds > best.seconds:
                    best = LowerBound(seconds=seconds, by=f"what {num} {name}s must send in all")
        return best


def _some(topology: Topology, devices: NDArray[np.int64], node: NDArray[np.int64]) -> Iterator[Cut]:
    """Cuts around members and nodes spread evenly over a large group."""
    n, num_nodes = len(devices), int(node.max()) + 1
    members = min(_SOME_MEMBERS, max(1, _MOST_PAIRS // n))  # a cut is one only if all its pairs are looked at
    nodes = min(_SOME_NODES, _MOST_PAIRS * num_nodes // n**2)
    sides: list[tuple[str, Sequence[int] | NDArray[np.int64]]] = [
        (f"rank {i}", [i]) for i in np.unique(np.linspace(0, n - 1, members).astype(int)).tolist()
    ]
    if num_nodes > 1:
        some = np.unique(np.linspace(0, num_nodes - 1, nodes).astype(int)).tolist()
        sides += [(f"node {k}", np.flatnonzero(node == k)) for k in some]
    for name, side in sides:
        inside = np.zeros(n, dtype=bool)
        inside[side] = True
        near, far = np.flatnonzero(inside), np.flatnonzero(~inside)
        source, destination = np.repeat(near, len(far)), np.tile(far, len(near))
        pairs = Pairs.between(
            topology, devices, np.concatenate([source, destination]), np.concatenate([destination, source])
        )
        yield pairs.around(np.where(inside, 0, 1), name)[0]
