"""What the collectives of many equal groups take alone: the fastest protocol on what they put on which resource."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.loads import loads_of
from clustersim.collective.phases import PhaseCost, phase_ns
from clustersim.collective.traffic import Traffic
from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.protocol import TEXTBOOK, Demand, Protocol
from clustersim.topology.topology import Topology

__all__ = ["GroupCost", "group_cost"]


@dataclass(kw_only=True, slots=True, eq=False)
class GroupCost:
    """n groups of m members, S signatures, E edges.

    Attributes
    ----------
    ns : NDArray[int64], shape (n, S)
        duration alone on the links [ns]
    latency_ns : NDArray[int64], shape (n, S)
        the part of it that is not the time of its bytes [ns]
    protocol : NDArray[str], shape (n, S)
        name of the protocol that is taken, empty where the topology's library has none for the algorithm
    group, row : NDArray[int64], shape (E,)
        the edges: position of the group in the block, resource
    load : NDArray[int64], shape (E, S)
        bytes that one collective of each signature puts on the resource [B]
    by_phase : PhaseCost
        the same for each of the phases that follow one another
    memory_row : NDArray[int64], shape (n, m)
        HBM resource of each member, -1 where the topology has none
    """

    ns: NDArray[np.int64]
    latency_ns: NDArray[np.int64]
    protocol: NDArray[np.str_]
    group: NDArray[np.int64]
    row: NDArray[np.int64]
    load: NDArray[np.int64]
    by_phase: PhaseCost
    memory_row: NDArray[np.int64]


def group_cost(
    topology: Topology,
    devices: NDArray[np.int64],
    traffic: tuple[Traffic, ...],
    pinned: Sequence[str | None] = (),
) -> GroupCost:
    """Durations and demands.

    Parameters
    ----------
    devices : NDArray[int64], shape (n, m)
        of the members of each group
    traffic : tuple[Traffic, ...]
        one a signature
    pinned : Sequence[str or None]
        for each signature the only protocol to take; none when left out

    Notes
    -----
    Alone, a collective takes for bandwidth max over resources of load / capacity, taken over all phases together when
    they are pipelined and phase by phase when they are not, plus the latency that these bytes do not hide: at most Σ
    over phases of num_steps · (longest route latency), less where rings, trees or exchanges run ahead
    (:mod:`clustersim.collective.exposed`, :mod:`clustersim.collective.up_and_down`). Each phase that follows another
    has its own share of the duration, in which it runs at an even speed. HBM is read and written in proportion to what
    a member sends and receives in each phase. The launch of its kernel is part of the latency, of the first phase.
    Where the topology's communication library has protocols for the algorithm,
    :meth:`clustersim.hardware.protocol.Protocol.ns` says what each adds to all latencies and the bytes, and the fastest
    is taken: of two that tie, the first.

    Raises
    ------
    BadInput
        when a pinned protocol is none of the algorithm's here
    """
    loads = loads_of(topology, devices, traffic)
    n, num = len(devices), len(traffic)
    phases = loads.phases
    cost = GroupCost(
        ns=np.zeros((n, num), dtype=np.int64),
        latency_ns=np.zeros((n, num), dtype=np.int64),
        protocol=np.zeros((n, num), dtype="U16"),
        group=loads.group,
        row=loads.row,
        load=phases.total(loads.load),
        by_phase=PhaseCost(
            phases=phases,
            ns=np.zeros((n, phases.num_phases), dtype=np.int64),
            load=loads.load,
            peak_load=loads.peak,
            memory_nbytes=loads.memory,
        ),
        memory_row=loads.memory_row,
    )
    for s, (what, demand) in enumerate(zip(traffic, loads.demands, strict=True)):
        ways = _ways(topology, what, pinned[s] if pinned else None)
        ns, cost.latency_ns[:, s], best = _fastest(ways, demand)
        cost.protocol[:, s] = np.array([way.name for way in ways], dtype="U16")[best]
        mine = phases.of_signature(s)
        if phases.is_one(s):
            cost.by_phase.ns[:, mine] = ns[:, None]
            continue
        for k in np.unique(best).tolist():
            here = best == k
            cost.by_phase.ns[here, mine] = phase_ns(ways[k], loads.of_phases[mine], ns)[here]
    cost.ns = phases.total(cost.by_phase.ns)
    return cost


def _ways(topology: Topology, what: Traffic, pinned: str | None) -> tuple[Protocol, ...]:
    """The protocols to choose from."""
    ways = topology.protocols.get(what.algorithm, ()) if what.phases else ()
    if pinned is None or not what.phases:
        return ways or (TEXTBOOK,)
    kept = tuple(way for way in ways if way.name == pinned)
    if not kept:
        names = [way.name for way in ways]
        rule = f"is no protocol of {what.algorithm} here: {', '.join(names) or 'it has none on this topology'}"
        raise BadInput([Fault(key="protocol", value=pinned, rule=rule, nearest=nearest_name(pinned, names))])
    return kept


def _fastest(
    ways: tuple[Protocol, ...], demand: Demand
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Duration and latency under the fastest protocol that runs, and its number, shape (n,) each.

    One that is the only choice runs: the user asked for it.
    """
    ns, latency_ns = (np.stack(column) for column in zip(*(way.ns(demand) for way in ways), strict=True))
    runs = np.stack([way.runs(demand) for way in ways])
    best = np.argmin(np.where(runs, ns, np.iinfo(np.int64).max), axis=0)
    at = best, np.arange(len(best))
    return ns[at], latency_ns[at], best
