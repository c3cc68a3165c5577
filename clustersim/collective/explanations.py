"""Explain a collective: what it would take on a cluster, why, and how far that is from the least possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.bound import KINDS, bus_factor
from clustersim.collective.cuts import Cuts
from clustersim.collective.explanation import Explanation
from clustersim.collective.price import Price, price
from clustersim.collective.select import PROTOCOLS, pin
from clustersim.collective.traffic import Algorithm
from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.topology.topology import Topology

__all__ = ["call_faults", "explain", "explain_sizes", "largest_payload"]

Devices = Sequence[int] | NDArray[np.int64]

_LONGEST = 10**9
"""Time of a collective that is still given [s]; whole nanoseconds in 64 bits reach nine times as far."""

_ALL_PAIRS = 512
_ROUTES_AT_ONCE = 1 << 22


def explain(
    kind: str,
    nbytes: int,
    topology: Topology,
    devices: Devices | None = None,
    *,
    algorithm: str | Algorithm | None = None,
    protocol: str | None = None,
) -> Explanation:
    """Explain one collective.

    Parameters
    ----------
    kind : str
        ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``all_to_all``, ``broadcast`` …
    nbytes : int
        payload as nccl-tests counts it: the full buffer of one rank [B]
    topology : Topology
    devices : sequence of int, optional
        of the members, in group order; all of the topology when left out
    algorithm : str or Algorithm, optional
        pins it: ``ring``, ``ring/LL128``, or one of the user's own
    protocol : str, optional
        pins it: ``LL``, ``LL128``, ``Simple``

    Returns
    -------
    Explanation
        a group of one takes its launch and crosses no link

    Raises
    ------
    BadInput
        with every fault: an unknown kind, algorithm or protocol, a payload that is no number of bytes or too large, a
        device that is not there or there twice, links that carry nothing, members without a route between them

    Examples
    --------
    >>> import clustersim as cs
    >>> why = cs.explain("all_reduce", 1 << 30, cs.load_topology("dgx-a100", nodes=1))
    >>> why.algorithm, why.num_ranks
    ('ring', 8)
    """
    return explain_sizes(kind, [nbytes], topology, devices, algorithm=algorithm, protocol=protocol)[0]


def explain_sizes(
    kind: str,
    sizes: Sequence[int],
    topology: Topology,
    devices: Devices | None = None,
    *,
    algorithm: str | Algorithm | None = None,
    protocol: str | None = None,
) -> list[Explanation]:
    """Explain one collective at several payloads; as :func:`explain` for each, and quicker.

    Parameters
    ----------
    kind, topology, devices, algorithm, protocol
        as of :func:`explain`
    sizes : sequence of int
        payloads [B]

    Returns
    -------
    list[Explanation]
        one a payload

    Raises
    ------
    BadInput
        as :func:`explain` does, with the faults of all payloads
    """
    given = range(topology.num_devices) if devices is None else devices
    faults = [
        *call_faults(kind, algorithm, protocol),
        *_group_faults(topology, given),
        *_size_faults(sizes, len(given)),
        *_resource_faults(topology),
    ]
    if faults:
        raise BadInput(faults)
    members = np.asarray(given, dtype=np.int64)
    if unreachable := list(_route_faults(topology, members)):
        raise BadInput(unreachable)
    at_once = max(1, _ROUTES_AT_ONCE // len(members) ** 2)
    priced: list[Price] = []
    with np.errstate(over="ignore", invalid="ignore"):  # times beyond 64 bits are refused below
        for first in range(0, len(sizes), at_once):
            some = sizes[first : first + at_once]
            priced += price(topology, members, kind, some, algorithm=algorithm, protocol=protocol)
    if endless := list(_time_faults(topology, priced)):
        raise BadInput(endless)
    if not priced:
        return []
    shape = priced[0].shape
    reducing = shape.multicast or shape.in_network
    cuts = Cuts.of(topology, members, _busiest_of_each_kind(topology, priced), reducing=reducing)
    return [_explained(topology, members, one, cuts) for one in priced]


def largest_payload(num_members: int) -> int:
    """Largest payload of a group that loads in 64 bits can hold [B].

    A member moves less than 16 times the payload and a link shared by all less than 16 n times; the first must be exact
    as a double, the second as a 64-bit integer.
    """
    return min(1 << 49, (1 << 58) // max(1, num_members))


def _explained(topology: Topology, members: NDArray[np.int64], one: Price, cuts: Cuts) -> Explanation:
    seconds = one.ns / 1e9
    algbw = one.nbytes / seconds if seconds else 0.0
    bound = cuts.bound(one.kind, one.nbytes)
    return Explanation(
        kind=one.kind,
        nbytes=one.nbytes,
        topology=topology.name,
        num_ranks=len(members),
        num_nodes=len(np.unique(topology.node_of[members])),
        algorithm=one.traffic.algorithm,
        protocol=one.protocol,
        reason=one.reason,
        num_steps=sum(phase.num_steps for phase in one.traffic.phases),
        num_channels=one.traffic.num_sms,
        seconds=seconds,
        latency_seconds=one.latency_ns / 1e9,
        algbw=algbw,
        busbw=algbw * bus_factor(one.kind, len(members)) if len(members) > 1 else 0.0,
        lower_bound=bound.seconds,
        bounded_by=bound.by,
        rows=one.rows,
        loads=one.loads,
        resources=topology.resources,
    )


def _busiest_of_each_kind(topology: Topology, priced: Sequence[Price]) -> NDArray[np.int64]:
    """Of each block of links the one that the largest payload loads most, the busiest block first."""
    largest = max(priced, key=lambda one: one.nbytes)
    order = np.argsort(-(largest.loads / topology.resources.capacity[largest.rows]), kind="stable")
    rows = largest.rows[order]
    _, first = np.unique(np.searchsorted(topology.resources.first, rows, side="right"), return_index=True)
    return rows[np.sort(first)]


def call_faults(kind: str, algorithm: str | Algorithm | None, protocol: str | None) -> Iterator[Fault]:
    """What is wrong with a call, whatever the cluster."""
    if kind not in KINDS:
        rule = f"is not a collective: {', '.join(KINDS)}"
        yield Fault(key="kind", value=kind, rule=rule, nearest=nearest_name(str(kind), KINDS))
    if algorithm is not None:
        try:
            pin(algorithm)
        except BadInput as error:
            yield from error.faults
    if protocol is not None and protocol not in PROTOCOLS:
        rule = f"is not a protocol: {', '.join(PROTOCOLS)}"
        yield Fault(key="protocol", value=protocol, rule=rule, nearest=nearest_name(str(protocol), PROTOCOLS))
    elif protocol is not None and isinstance(algorithm, str) and algorithm.partition("/")[2] not in ("", protocol):
        pinned = algorithm.partition("/")[2]
        yield Fault(key="protocol", value=protocol, rule=f"must be that of {algorithm}", nearest=pinned)


def _group_faults(topology: Topology, devices: Devices) -> Iterator[Fault]:
    last = topology.num_devices - 1
    if not len(devices):
        yield Fault(key="devices", value=[], rule="must name at least one device", nearest=[0])
    seen: set[int] = set()
    for device in devices:
        if isinstance(device, bool) or not isinstance(device, int | np.integer):
            yield Fault(key="devices", value=device, rule="must be the whole number of a device", nearest=0)
        elif not 0 <= device <= last:
            rule = f"is not a device of {topology.name}: 0 to {last}"
            yield Fault(key="devices", value=int(device), rule=rule, nearest=min(max(int(device), 0), last))
        elif device in seen:
            yield Fault(key="devices", value=int(device), rule="must stand in the group once")
        else:
            seen.add(int(device))


def _size_faults(sizes: Sequence[int], num_members: int) -> Iterator[Fault]:
    most = largest_payload(num_members)
    for nbytes in sizes:
        if isinstance(nbytes, bool) or not isinstance(nbytes, int | np.integer):
            yield Fault(key="nbytes", value=nbytes, rule="must be a whole number of bytes", nearest=1 << 20)
        elif not 0 <= nbytes <= most:
            rule = f"must be from 0 to {most} bytes among {num_members:,} ranks"
            yield Fault(key="nbytes", value=int(nbytes), rule=rule, nearest=min(max(int(nbytes), 0), most))


def _resource_faults(topology: Topology) -> Iterator[Fault]:
    table = topology.resources
    for row in np.flatnonzero(table.capacity < 1)[:10].tolist():
        rule = "must carry at least 1 B/s"
        yield Fault(key=table.name(row), value=int(table.capacity[row]), rule=rule, nearest=1)
    for row in np.flatnonzero(table.latency_ns < 0)[:10].tolist():
        yield Fault(key=table.name(row), value=int(table.latency_ns[row]), rule="must not be negative [ns]", nearest=0)


def _route_faults(topology: Topology, members: NDArray[np.int64]) -> Iterator[Fault]:
    """Pairs without a route: of all pairs, above 512 members of each with those 1, 2, 4, 8 … further on."""
    n = len(members)
    apart = np.arange(1, n) if n <= _ALL_PAIRS else 2 ** np.arange(int(n - 1).bit_length())
    source = np.repeat(np.arange(n), len(apart))
    destination = (source + np.tile(apart, n)) % n
    rows = topology.route(members[source], members[destination])
    for at in np.flatnonzero((rows < 0).all(axis=1))[:10].tolist():
        pair = f"{members[source[at]]} -> {members[destination[at]]}"
        rule = "must lead over at least one link: the devices cannot reach each other"
        yield Fault(key=f"route {pair}", value=None, rule=rule)


def _time_faults(topology: Topology, priced: Sequence[Price]) -> Iterator[Fault]:
    for one in priced:
        seconds = one.loads / topology.resources.capacity[one.rows]
        if len(seconds) and seconds.max() > _LONGEST:
            name = topology.resources.name(int(one.rows[np.argmax(seconds)]))
            rule = f"would take {seconds.max():.3g} s on {name}; at most {_LONGEST:.0e} s are given"
            near = int(one.nbytes * _LONGEST / seconds.max())
            yield Fault(key="nbytes", value=one.nbytes, rule=rule, nearest=near)
