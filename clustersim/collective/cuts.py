"""Cuts through a group: what must cross each, whatever the algorithm, and how fast it can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.bound import lower_bound
from clustersim.topology.topology import Topology

__all__ = ["Cut", "Cuts", "LowerBound", "crossing"]

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
class Cut:
    """Some members of a group against the others.

    Parameters
    ----------
    inside : NDArray[bool], shape (n,)
        the members on this side
    name : str
        ``rank 3``, ``node 1``, ``8 ranks``
    outward, inward : float
        capacity of resources of which every route to, and from, the other side crosses one [B/s]
    outward_over, inward_over : str
        which: ``8 nic``
    """

    inside: NDArray[np.bool_]
    name: str
    outward: float
    inward: float
    outward_over: str
    inward_over: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Cuts:
    """The cuts of one group.

    **One cut.** Every byte that leaves a side crosses one of its resources, so t ≥ (bytes that must leave)/(their
    capacity together), and likewise inward. What must cross is :func:`crossing`; it holds with reduction in the network
    too, and for relays, since a member that passes bytes on is on one of the two sides.

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
        pairs = _Pairs.between(topology, devices, np.repeat(member, n), np.tile(member, n))
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


def crossing(kind: str, nbytes: int, inside: NDArray[np.bool_]) -> tuple[float, float]:
    """Bytes that must leave one side of a cut and that must enter it, whatever the algorithm.

    With k of n members inside: an all_reduce takes the sum of either side to the other, S each way; of an all_gather
    k/n·S leaves and (n-k)/n·S enters, of a reduce_scatter the reverse; of an all_to_all k(n-k)/n·S go each way. Rooted
    collectives cross once, on the way from or to position 0.

    Parameters
    ----------
    kind : str
    nbytes : int
        payload S [B]
    inside : NDArray[bool], shape (n,)

    Returns
    -------
    outward, inward : float
        [B]
    """
    n, k = len(inside), int(inside.sum())
    if k in (0, n):
        return 0.0, 0.0
    near, far = k / n * nbytes, (n - k) / n * nbytes
    root = bool(inside[0])
    whole = float(nbytes)
    if kind == "send_recv":
        return (0.0, 0.0) if root == bool(inside[1]) else (whole, 0.0) if root else (0.0, whole)
    return {
        "all_reduce": (whole, whole),
        "all_gather": (near, far),
        "reduce_scatter": (far, near),
        "all_to_all": (near * (n - k), near * (n - k)),
        "broadcast": (whole, 0.0) if root else (0.0, whole),
        "reduce": (0.0, whole) if root else (whole, 0.0),
        "scatter": (far, 0.0) if root else (0.0, near),
        "gather": (0.0, far) if root else (near, 0.0),
    }.get(kind, (0.0, 0.0))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Pairs:
    """Routes between pairs of members.

    ``columns`` are ways to pick one resource of each route, -1 where a route has none: its first and last, and the
    first and last of each kind. Those picked on all routes between two sides are a set that every route crosses.
    """

    num_members: int
    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: tuple[tuple[str, NDArray[np.int64]], ...]
    used: NDArray[np.int64]
    capacity: NDArray[np.float64]

    @classmethod
    def between(
        cls, topology: Topology, devices: NDArray[np.int64], source: NDArray[np.int64], destination: NDArray[np.int64]
    ) -> _Pairs:
        keep = source != destination
        source, destination = source[keep], destination[keep]
        rows = topology.route(devices[source], devices[destination])
        used = np.unique(rows[rows >= 0])
        index = np.full(len(topology.resources) + 1, -1, dtype=np.int64)
        index[used] = np.arange(len(used))
        compact = index[rows]
        kinds = topology.resources.kind[used]
        columns: list[tuple[str, NDArray[np.int64]]] = []
        for kind in np.unique(kinds):
            here = (compact >= 0) & (np.append(kinds, -1)[compact] == kind)
            columns += _ends(topology.resources.kinds[kind], compact, here)
        columns += _ends("links", compact, compact >= 0)
        return cls(
            num_members=len(devices),
            source=source,
            destination=destination,
            rows=rows,
            columns=tuple(columns),
            used=used,
            capacity=topology.resources.capacity[used].astype(np.float64),
        )

    def around(self, part: NDArray[np.int64], name: str) -> list[Cut]:
        """One cut for each part, against all others; ``part`` is its number for each member."""
        num_parts = int(part.max()) + 1
        out, out_over = self._narrowest(part, self.source, num_parts)
        into, in_over = self._narrowest(part, self.destination, num_parts)
        return [
            Cut(
                inside=part == p,
                name=name if " " in name else f"{name} {p}",
                outward=float(out[p]),
                inward=float(into[p]),
                outward_over=out_over[p],
                inward_over=in_over[p],
            )
            for p in range(num_parts)
        ]

    def behind(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.bool_]]:
        """Members that send over a resource, for a few of ``rows``; and those that do not receive over it."""
        seen: set[bytes] = set()
        for row in rows[np.isin(rows, self.used)]:
            over = (self.rows == row).any(axis=1)
            for ends, side in ((self.source, True), (self.destination, False)):
                inside = np.full(self.num_members, not side)
                inside[ends[over]] = side
                if 1 < inside.sum() < self.num_members and inside.tobytes() not in seen:
                    seen.add(inside.tobytes())
                    yield inside

    def _narrowest(
        self, part: NDArray[np.int64], end: NDArray[np.int64], num_parts: int
    ) -> tuple[NDArray[np.float64], list[str]]:
        """Least capacity of a set that all routes between a part and the others cross, by part."""
        away = part[self.source] != part[self.destination]
        mine = part[end][away]
        best = np.full(num_parts, np.inf)
        over = [""] * num_parts
        for name, column in self.columns:
            picked = column[away]
            some = picked >= 0
            crossed = np.zeros(num_parts * len(self.used), dtype=bool)
            crossed[mine[some] * len(self.used) + picked[some]] = True
            of, row = np.divmod(np.flatnonzero(crossed), len(self.used))
            count = np.bincount(of, minlength=num_parts)
            capacity = np.bincount(of, weights=self.capacity[row], minlength=num_parts).astype(np.float64)
            capacity[mine[~some]] = np.inf
            for p in np.flatnonzero(capacity < best):
                over[p] = f"{count[p]} {name}"
            best = np.minimum(best, capacity)
        return best, over


def _ends(name: str, rows: NDArray[np.int64], here: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The first and the last of the marked resources of each route."""
    route = np.arange(len(rows))
    some = here.any(axis=1)
    for at in (here.argmax(axis=1), here.shape[1] - 1 - here[:, ::-1].argmax(axis=1)):
        yield name, np.where(some, rows[route, at], -1)


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
        pairs = _Pairs.between(
            topology, devices, np.concatenate([source, destination]), np.concatenate([destination, source])
        )
        yield pairs.around(np.where(inside, 0, 1), name)[0]
