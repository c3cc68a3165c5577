"""The flows of a phase on their routes, with the time that each route takes under all that is on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.edges import Edges
from clustersim.collective.routes import Routes
from clustersim.collective.traffic import Phase

__all__ = ["Burden", "Laid"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Laid:
    """The f flows of one phase on the routes of n groups.

    Parameters
    ----------
    phase : Phase
    latency_ns : NDArray[int64], shape (n, f)
    busiest : NDArray[float64], shape (n, f)
        time of the busiest resource of the flow's route under all bytes of the collective [s]
    per_byte : NDArray[float64], shape (n, f)
        of the route's slowest resource [s/B]
    """

    phase: Phase
    latency_ns: NDArray[np.int64]
    busiest: NDArray[np.float64]
    per_byte: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Burden:
    """What groups put on resources together, to be looked up by flows.

    Parameters
    ----------
    routes : Routes
    place : NDArray[int64], shape (E,)
        group and resource as one number, ascending
    seconds : NDArray[float64], shape (E + 1,)
        time of the resource under that load [s]; the last entry is 0, of no resource
    """

    routes: Routes
    place: NDArray[np.int64]
    seconds: NDArray[np.float64]

    @classmethod
    def of(cls, routes: Routes, edges: Edges, column: int) -> Burden:
        """That of one column of the edges."""
        capacity = routes.topology.resources.capacity
        seconds = np.append(edges.load[:, column] / capacity[edges.row], 0.0)
        return cls(routes=routes, place=edges.places(len(capacity)), seconds=seconds)

    def laid(self, phase: Phase) -> Laid:
        """The flows of a phase under it."""
        resources = self.routes.topology.resources
        hops, _ = self.routes.of(phase)
        shape = len(hops), len(phase.source), -1
        place = np.where(hops < 0, -1, hops + np.arange(len(hops))[:, None] * len(resources.capacity))
        at = np.minimum(np.searchsorted(self.place, place), max(0, len(self.place) - 1))
        crossed = np.where(np.append(self.place, -2)[at] == place, at, -1)
        return Laid(
            phase=phase,
            latency_ns=np.append(resources.latency_ns, 0)[hops].reshape(shape).sum(axis=2),
            busiest=self.seconds[crossed].reshape(shape).max(axis=2, initial=0.0),
            per_byte=np.append(1 / resources.capacity, 0.0)[hops].reshape(shape).max(axis=2, initial=0.0),
        )
