"""Routes between pairs of members of a group, and the cuts that these show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.cut import Cut
from clustersim.topology.topology import Topology

__all__ = ["Pairs"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pairs:
    """Routes between pairs of members.

    ``columns`` are ways to pick one resource of each route, -1 where a route has none: its first and last, and the
    first and last of each kind. Those picked on all routes between two sides are a set that every route crosses.

    Parameters
    ----------
    num_members : int
    source, destination : NDArray[int64], shape (p,)
        members, by position in the group
    rows : NDArray[int64], shape (p, h)
        resources of each route, -1 behind its end
    columns : tuple[tuple[str, NDArray[int64]], ...]
        kind, and position in ``used``, shape (p,)
    used : NDArray[int64], shape (u,)
        resources that any route crosses
    capacity : NDArray[float64], shape (u,)
        of these [B/s]
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
    ) -> Pairs:
        """The routes from ``source`` to ``destination``, members by position; of a member to itself there is none."""
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
