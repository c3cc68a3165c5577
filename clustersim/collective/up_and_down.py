"""The latency that bytes do not hide where chunks go up a tree and down again, as in its all-reduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.edges import Edges
from clustersim.collective.laid import Laid
from clustersim.collective.laps import Edge, chain_ns
from clustersim.collective.routes import Routes

__all__ = ["Stretch", "returning_ns"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Stretch:
    """The way of a chunk through one phase, there and back, of n groups.

    Parameters
    ----------
    num_steps : int
        edges one way
    away : bool
        whether they are between nodes
    latency_ns : NDArray[int64], shape (n,)
        longest of an edge [ns]
    one_way, both : NDArray[float64], shape (n,)
        time of the busiest resource of the phase's flows under the bytes of the larger way, and under all [s]
    """

    num_steps: int
    away: bool
    latency_ns: NDArray[np.int64]
    one_way: NDArray[np.float64]
    both: NDArray[np.float64]

    @classmethod
    def of(cls, routes: Routes, one: Laid, node: NDArray[np.int64]) -> Stretch:
        """A phase of which the first half of the flows is the way there.

        Parameters
        ----------
        routes : Routes
        one : Laid
            under the bytes of all phases
        node : NDArray[int64], shape (m,)
            of the members
        """
        phase, ways = one.phase, []
        capacity = routes.topology.resources.capacity.astype(np.float64)
        n, half = len(one.busiest), len(phase.source) // 2
        hops = routes.of(phase)[0].reshape(n, len(phase.source), -1)
        for way in (slice(None, half), slice(half, None)):
            edges = Edges.of(hops[:, way].reshape(n, -1), np.repeat(phase.nbytes[way], hops.shape[2])[:, None])
            ways.append(edges.busiest(capacity, n)[:, 0])
        return cls(
            num_steps=phase.num_steps // 2,
            away=bool((node[phase.source] != node[phase.destination]).all()),
            latency_ns=one.latency_ns.max(axis=1),
            one_way=np.maximum(*ways),
            both=one.busiest.max(axis=1),
        )


def returning_ns(
    stretches: Sequence[Stretch], whole: NDArray[np.float64], in_step: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Latency beside the bytes' time, shape (n,) [ns].

    The way of all chunks from the end of a chain up to the root and back is played. Inside a node its edges are on
    links that the chains of all lanes use in turn, so that each link meets as many edges as a chain has, both ways.
    Between nodes what goes up from a node and what comes down from it share its links as far as both ways together
    take longer there than one.

    Parameters
    ----------
    stretches : sequence of Stretch
        from a chain's end to the root
    whole : NDArray[float64], shape (n,)
        time of the busiest resource [s]
    in_step : NDArray[int64], shape (n,)
        latencies of all steps [ns]: what is returned is at most that, and that where the way is too long to be played
    """
    exposed = in_step.copy()
    for g in range(len(whole)):
        end = chain_ns(_there_and_back(stretches, g))
        if end is not None:
            exposed[g] = min(max(0, round(end - float(whole[g]) * 1e9)), int(in_step[g]))
    return exposed


def _there_and_back(stretches: Sequence[Stretch], g: int) -> tuple[Edge, ...]:
    up, down = list[Edge](), list[Edge]()
    for stretch in stretches:
        latency, one_way, both = (float(x[g]) for x in (stretch.latency_ns, stretch.one_way, stretch.both))
        for step in range(stretch.num_steps):
            if stretch.away:  # a node's link, by its height: what goes up from it, and down to the one below
                crowd = both / (2 * one_way) if one_way else 1.0
                up.append(Edge(latency, one_way * 1e9, step + 1, crowd))
                down.append(Edge(latency, one_way * 1e9, step + 2, crowd))
            else:
                up.append(Edge(latency, both * 1e9 / (2 * stretch.num_steps), 0))
                down.append(up[-1])
    return (*up, *reversed(down))
