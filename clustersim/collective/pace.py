"""Exchanges that follow one another: when the last has ended, if nobody waits for others than its partners."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.edges import Edges
from clustersim.collective.laid import Burden, Laid
from clustersim.collective.routes import Routes
from clustersim.collective.traffic import Phase, Traffic

__all__ = ["pace"]


def pace(routes: Routes, what: Traffic) -> NDArray[np.float64] | None:
    """When the groups have ended, shape (n,) [s]; None where no phase begins before all of the one before has ended.

    A member goes on when what it sends and what it gets in a phase has arrived. None, too, where that ends within
    0.5 % of all phases at the pace of their slowest exchange.

    Parameters
    ----------
    routes : Routes
    what : Traffic
        without a protocol of a library
    """
    if what.pipelined or len(what.phases) < 2:
        return None
    laid = []
    for phase in what.phases:
        edges = Edges.of(routes.of(phase)[0], routes.nbytes(phase)[:, None])
        laid.append(Burden.of(routes, edges, 0).laid(phase))
    return _paced(laid, routes.devices.shape[1])


def _paced(laid: Sequence[Laid], num_members: int) -> NDArray[np.float64] | None:
    """The same of phases that each lie under their own bytes alone."""
    if any(one.phase.num_steps != 1 or one.phase.message_nbytes is not None or _crowded(one.phase) for one in laid):
        return None
    together = np.zeros(len(laid[0].busiest))
    ready = np.zeros((len(together), num_members))
    for one in laid:
        source, destination = one.phase.source, one.phase.destination
        took = one.latency_ns / 1e9 + one.busiest
        together += took.max(axis=1)
        arrived = np.maximum(ready[:, source], ready[:, destination]) + took
        after = ready.copy()
        after[:, source] = arrived
        after[:, destination] = np.maximum(after[:, destination], arrived)
        ready = after
    ends: NDArray[np.float64] = ready.max(axis=1)
    return ends if (ends < 0.995 * together).any() else None


def _crowded(phase: Phase) -> bool:
    """Whether a member sends or gets more than one flow, or switches add some up."""
    ends = (phase.source, phase.destination)
    return phase.tree is not None or not len(ends[0]) or any(len(np.unique(end)) < len(end) for end in ends)
