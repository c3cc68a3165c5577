"""What one collective takes alone on a cluster: time, algorithm, protocol and loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.choose import choose
from clustersim.collective.seating import seatings
from clustersim.collective.select import PROTOCOLS, Option, options, pin
from clustersim.collective.traffic import Algorithm, GroupShape, Traffic
from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.topology.meshes import meshes
from clustersim.topology.topology import Topology

__all__ = ["Price", "price"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Price:
    """One collective of one group, alone.

    Parameters
    ----------
    kind : str
    nbytes : int
        payload, as :data:`clustersim.collective.traffic.Algorithm` counts it [B]
    shape : GroupShape
        how its members sit
    traffic : Traffic
        its flows
    protocol : str
        empty where the topology's communication library has none for the algorithm
    reason : str
        why this algorithm
    ns, latency_ns : int
        duration, and the part of it that no bandwidth would shorten [ns]
    rows, loads : NDArray[int64], shape (E,)
        resources it crosses, and bytes on each [B]
    """

    kind: str
    nbytes: int
    shape: GroupShape
    traffic: Traffic
    protocol: str
    reason: str
    ns: int
    latency_ns: int
    rows: NDArray[np.int64]
    loads: NDArray[np.int64]


def price(
    topology: Topology,
    devices: Sequence[int] | NDArray[np.int64],
    kind: str,
    nbytes: Sequence[int],
    *,
    algorithm: str | Algorithm | None = None,
    protocol: str | None = None,
) -> list[Price]:
    """Price collectives of one group, one for each payload.

    Parameters
    ----------
    devices : sequence of int
        of the members, in group order
    kind : str
    nbytes : sequence of int
        payloads [B]
    algorithm : str or Algorithm, optional
        pins it: a name, a name and a protocol as ``ring/LL128``, or an algorithm of the user's own
    protocol : str, optional
        pins the protocol: ``LL``, ``LL128``, ``Simple``

    Raises
    ------
    BadInput
        when there is no such device, kind, algorithm or protocol, a device stands there twice, a payload is negative
    """
    members = np.asarray(devices, dtype=np.int64).reshape(1, -1)
    _require_group(topology, members[0])
    if protocol is not None and protocol not in PROTOCOLS:
        rule = f"is not a protocol: {', '.join(PROTOCOLS)}"
        raise BadInput([Fault(key="protocol", value=protocol, rule=rule, nearest=nearest_name(protocol, PROTOCOLS))])
    ((shape,), _) = seatings(topology, meshes(topology), members)
    calls = []
    for payload in nbytes:
        ways: tuple[Option, ...] = options(kind, payload, shape) if algorithm is None else (pin(algorithm),)
        if protocol is not None:
            ways = tuple(way for way in ways if _has(topology, way, protocol)) or ways
            ways = tuple(replace(way, protocol=protocol) for way in ways)
        calls.append((kind, payload, ways))
    chosen = choose(topology, members, shape, calls)
    cost, priced = chosen.cost, []
    for s, payload in enumerate(nbytes):
        used = cost.load[:, s] > 0
        one = Price(
            kind=kind,
            nbytes=payload,
            shape=shape,
            traffic=chosen.traffic[s],
            protocol=str(cost.protocol[0, s]),
            reason=chosen.reasons[s],
            ns=int(cost.ns[0, s]),
            latency_ns=int(cost.latency_ns[0, s]),
            rows=cost.row[used],
            loads=cost.load[used, s],
        )
        priced.append(one)
    return priced


def _has(topology: Topology, way: Option, protocol: str) -> bool:
    name = getattr(way.algorithm, "__name__", "")
    return any(known.name == protocol for known in topology.protocols.get(name, ()))


def _require_group(topology: Topology, members: NDArray[np.int64]) -> None:
    faults = []
    if not len(members):
        faults.append(Fault(key="devices", value=[], rule="must name at least one device", nearest=[0]))
    outside = members[(members < 0) | (members >= topology.num_devices)]
    for device in outside[:5].tolist():
        rule = f"is not a device of {topology.name}: 0 to {topology.num_devices - 1}"
        nearest = min(max(device, 0), topology.num_devices - 1)
        faults.append(Fault(key="devices", value=device, rule=rule, nearest=nearest))
    device, count = np.unique(members, return_counts=True)
    twice = device[count > 1][:5].tolist()
    faults += [Fault(key="devices", value=d, rule="stands in the group more than once") for d in twice]
    if faults:
        raise BadInput(faults)
