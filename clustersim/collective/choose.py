"""The algorithm and protocol of each collective of many equal groups: the user's, else the fastest, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.cost import GroupCost, group_cost
from clustersim.collective.overlap import Overlap
from clustersim.collective.select import Option
from clustersim.collective.traffic import GroupShape, Traffic
from clustersim.collective.well_formed import require_well_formed
from clustersim.topology.topology import Topology

__all__ = ["Call", "Choice", "choose"]

Call = tuple[str, int, tuple[Option, ...]]
"""(kind, nbytes, what it may run as)."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Choice:
    """What n groups that sit alike run.

    Parameters
    ----------
    traffic : tuple[Traffic, ...]
        one a call
    cost : GroupCost
        of these
    reasons : tuple[str, ...]
        one line a call
    """

    traffic: tuple[Traffic, ...]
    cost: GroupCost
    reasons: tuple[str, ...]


def choose(
    topology: Topology,
    devices: NDArray[np.int64],
    shape: GroupShape,
    calls: Sequence[Call],
    overlap: Overlap | None = None,
) -> Choice:
    """Take the option that is fastest for the slowest of the groups: of two that tie, the first.

    NCCL chooses by a model of its own of the same kind, latency and bandwidth by algorithm and protocol
    (``src/graph/tuning.cc``), before it knows of other traffic. All groups take the same, so that none depends on the
    numbering of ranks.

    Parameters
    ----------
    devices : NDArray[int64], shape (n, m)
        of the members of each group
    shape : GroupShape
        of all of them
    calls : Sequence[Call]
    overlap : Overlap, optional
        what collectives take from the kernels beside them

    Raises
    ------
    BadInput
        when an algorithm does not have the kind, needs what the switches cannot do, or a pinned protocol is not its own
    """
    overlap = overlap or Overlap()
    tried: list[tuple[tuple[Traffic, ...], GroupCost]] = []
    for k in range(max((len(ways) for _, _, ways in calls), default=0)):
        taken = [(kind, nbytes, ways[min(k, len(ways) - 1)]) for kind, nbytes, ways in calls]
        traffic = tuple(
            overlap.of(require_well_formed(way.algorithm(kind, nbytes, shape), kind, shape.num_members))
            for kind, nbytes, way in taken
        )
        tried.append((traffic, group_cost(topology, devices, traffic, [way.protocol for *_, way in taken])))
    best = [int(np.argmin([cost.ns[:, s].max() for _, cost in tried])) for s in range(len(calls))]
    reasons = tuple(_reason(tried, s, ways) for s, (*_, ways) in enumerate(calls))
    if len(set(best)) == 1:
        traffic, cost = tried[best[0]]
    else:
        traffic = tuple(tried[k][0][s] for s, k in enumerate(best))
        protocols = [ways[min(k, len(ways) - 1)].protocol for k, (*_, ways) in zip(best, calls, strict=True)]
        cost = group_cost(topology, devices, traffic, protocols)
    return Choice(traffic=traffic, cost=cost, reasons=reasons)


def _reason(tried: Sequence[tuple[tuple[Traffic, ...], GroupCost]], s: int, ways: tuple[Option, ...]) -> str:
    if len(ways) == 1:
        return ways[0].reason
    times = []
    for traffic, cost in tried[: len(ways)]:
        slowest = int(np.argmax(cost.ns[:, s]))
        protocol = f"/{cost.protocol[slowest, s]}" if cost.protocol[slowest, s] else ""
        times.append((int(cost.ns[slowest, s]), f"{traffic[s].algorithm}{protocol}"))
    return "fastest of " + ", ".join(f"{name} {ns / 1e3:.4g} us" for ns, name in sorted(times, key=lambda t: t[0]))
